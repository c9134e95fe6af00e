"""The non-negative version of a released function: kernel sums of places that have weights of 0 or more."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import UsageError
from hushsum.files import Header, decode_array, encode_array, encoded_size, narrowest_type
from hushsum.kernels import PROFILES, ProfileKernel
from hushsum.tables import WHOLE, GridReading, GridWeights

from ._base import (
    Answers,
    Detail,
    Payload,
    Points,
    QueryOptions,
    ReleasedFunction,
    file_bytes,
    load_single,
    register,
    stored_integer,
)
from ._noisy_table import NoisyTable
from ._points import PointsFunction
from ._public_points import ForwardedFacts

_FINE, _COARSE = 0.25, 0.5
_FEW_PLACES: Final = 1 << 15
MOST_PLACES: Final = 1 << 18
"""Places are a quarter of the kernel's width apart where that gives at most 2^15 of them, else half of it;
a function that needs more than 2^18 has no non-negative version.
"""

_FEWEST_CELLS: Final = 8
_ITERATIONS: Final = 150
_AT_A_TIME: Final = 1 << 14


def nearest_probabilities(values: Floats) -> Floats:
    """The nearest probabilities, in squared distance (Duchi et al. 2008).

    They are the values less one constant, and 0 where that is negative.

    >>> nearest_probabilities(np.array([0.6, 0.5, -0.2])).round(2).tolist()
    [0.55, 0.45, 0.0]
    """
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(falling > excess)[-1]], 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class NonnegativeFunction(ForwardedFacts):
    """Kernel sums of weighted places in the box: no weight is negative, and all sum to the released number of
    records. Made by ``f.nonnegative()``.

    So the answers are those of some dataset: none is negative, means are at most the kernel's largest value,
    and a map of densities integrates to the number of records. The places are a lattice, and synthetic.

    Attributes
    ----------
    function : ReleasedFunction
        What was released.
    places : GridReading
        The lattice, and how it is read.
    weights : array of integers
        Of the places, in units of 2⁻²⁰ records.

    Privacy
    -------
    Computed from what was released, so it spends nothing.

    Notes
    -----
    Standard errors are those of ``function``, and intervals are its intervals without the part below 0,
    widened where they do not contain the answer. Kernel sums of records are never negative, so they contain
    the truth whenever those of ``function`` do: their coverage is at least the same. The answer itself is
    biased: noise that would show records where none are is gone, and the records that it hid elsewhere are
    spread over the places that remain. ``bound`` allows for that by the distance between both answers.
    """

    kind = "nonnegative"

    places: GridReading
    weights: Integers

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False

    def sum(self, Q: object) -> Floats:
        """Kernel sums, shape (n_queries,); none is negative."""
        basis = self.places.basis
        return self.places.evaluate(self.weights, basis.prepare_queries(self._points(Q)), threads=1)

    def nonnegative(self) -> NonnegativeFunction:
        """The function itself."""
        return self

    def _answers(self, points: Points, options: QueryOptions) -> Answers:
        found = self.function._answers(points, options)
        value = self.sum(points) / (max(self.count, 1.0) if options.of == "mean" else 1.0)
        return replace(
            found,
            value=value,
            lower=np.minimum(np.maximum(found.lower, 0.0), value),
            upper=np.maximum(found.upper, value),
            bound=found.bound + np.abs(value - found.value),
        )

    def details(self) -> tuple[Detail, ...]:
        """The release, and how many places have a weight."""
        used = int(np.count_nonzero(self.weights))
        words = f"kernel sums of {used} of {self.weights.size} places, none with a negative weight"
        return (*self.function.details(), Detail("places", used, words))

    def _payload(self) -> Payload:
        release = file_bytes(self.function)
        type_name = narrowest_type(self.weights)
        constants = self.places.constants_as_json()
        layout = {
            "cells": list(self.places.basis.cells),
            **({} if constants is None else {"constants": constants}),
            "weights": type_name,
            "release": len(release),
        }
        return layout, [encode_array(self.weights, type_name), release], None


def nonnegative_version(function: ReleasedFunction) -> NonnegativeFunction:
    """The nearest weights of places, in the kernel's space, that are not negative and sum to the number of
    records. It is kept for the functions that were used last.

    Raises
    ------
    UsageError
        for functions without bounds, for kernels that are not sums of products over columns or take negative
        values, and for boxes with too many places.

    Notes
    -----
    With the matrix K of kernel values between places and the released sums f there, the squared distance of
    the kernel sums of weights w is ``wᵀKw − 2·wᵀf`` but for a constant. It is minimised by projected
    gradients with momentum and restarts (Beck and Teboulle 2009; O'Donoghue and Candès 2015). K depends on
    differences alone, so products with it are convolutions.
    """
    if not isinstance(function, NoisyTable | PointsFunction):
        rule = "must be a released table, or weighted points, to have a non-negative version"
        raise UsageError("function", rule, got=type(function).__name__, remedy="take that of the release")
    places = _places(function)
    basis = places.basis
    axes = [
        np.linspace(low, high, number)
        for low, high, number in zip(basis.bounds.low, basis.bounds.high, basis.nodes, strict=True)
    ]
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    pieces = np.array_split(points, -(-len(points) // _AT_A_TIME))
    sums = np.concatenate([function.sum(piece) for piece in pieces])
    first = np.zeros(basis.nodes, np.int64)
    first.flat[0] = WHOLE
    kernel = places.evaluate(first, basis.prepare_queries(points), threads=1)
    count = max(function.count, 1.0)
    shares = _nearest_shares(kernel.reshape(basis.nodes), sums.reshape(basis.nodes) / count)
    weights = np.rint(shares * (count * WHOLE)).astype(np.int64)
    return NonnegativeFunction(function, places, weights.reshape(basis.shape))


def _places(function: ReleasedFunction) -> GridReading:
    """A lattice over the box."""
    kernel, bounds = function.kernel, function.bounds
    PROFILES.check(kernel, "a non-negative version")
    assert isinstance(kernel, ProfileKernel)
    if bounds is None:
        raise UsageError("bounds", "must be declared for a non-negative version", got="none")
    if kernel.signed or not kernel.positive_definite:
        rule = "must be positive definite, without negative values, for a non-negative version"
        raise UsageError("kernel", rule, got=kernel.name)
    for spacing, most in ((_FINE, _FEW_PLACES), (_COARSE, MOST_PLACES)):
        cells = [
            max(_FEWEST_CELLS, math.ceil(side / (spacing * width)))
            for side, width in zip(bounds.widths, kernel.column_widths(), strict=True)
        ]
        if math.prod(number + 1 for number in cells) <= most:
            basis = GridWeights(tuple(cells), bounds, (0,) * len(cells), function.columns)
            return GridReading(basis, kernel)
    rule = f"must be wide enough that {MOST_PLACES} places cover the box, for a non-negative version"
    raise UsageError("bandwidth", rule, remedy="release with a larger bandwidth or narrower bounds")


def _nearest_shares(kernel: Floats, sums: Floats) -> Floats:
    """Probabilities of a lattice's places with the sums ``sums``, where ``kernel`` are the values between the
    first place and all of them.
    """
    from scipy import fft

    axes, shape = tuple(range(kernel.ndim)), kernel.shape
    around = kernel
    for axis in axes:
        # A period that is even in every column: differences of both signs.
        behind = np.flip(np.take(around, range(1, around.shape[axis] - 1), axis), axis)
        around = np.concatenate([around, behind], axis=axis)
    period = around.shape
    transform = fft.rfftn(around).real
    inside = tuple(slice(0, each) for each in shape)
    step = 1.0 / float(transform.max())
    shares = np.full(shape, 1.0 / kernel.size)
    ahead, momentum = shares, 1.0
    for _ in range(_ITERATIONS):
        convolved = fft.irfftn(fft.rfftn(ahead, period) * transform, period)[inside]
        moved = nearest_probabilities((ahead - step * (convolved - sums)).ravel()).reshape(shape)
        if float(((ahead - moved) * (moved - shares)).sum()) > 0.0:
            momentum = 1.0
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = moved + (momentum - 1.0) / following * (moved - shares)
        shares, momentum = moved, following
    return shares


def _cells(header: Header) -> tuple[int, ...]:
    cells: Sequence[object] = header["cells"]
    if not isinstance(cells, list):
        raise TypeError("cells")
    return tuple(stored_integer(each, 1, MOST_PLACES) for each in cells)


def _payload_size(header: Header) -> int:
    places = math.prod(number + 1 for number in _cells(header))
    if places > MOST_PLACES:
        raise ValueError("cells")
    return encoded_size((places,), header["weights"]) + stored_integer(header["release"], 0, 1 << 62)


def _build(header: Header, payload: memoryview) -> NonnegativeFunction:
    cells = _cells(header)
    size = len(payload) - stored_integer(header["release"], 0, len(payload))
    function = load_single(io.BytesIO(bytes(payload[size:])))
    if not isinstance(function, NoisyTable | PointsFunction) or function.bounds is None:
        raise ValueError("release")
    basis = GridWeights(cells, function.bounds, (0,) * len(cells), function.columns)
    places = GridReading(basis, function.kernel)
    if "constants" in header:
        places = places.with_constants(header["constants"])
    elif places.constants_as_json() is not None:
        raise ValueError("constants")
    weights = decode_array(payload[:size], basis.shape, header["weights"]).astype(np.int64)
    if (weights < 0).any() or narrowest_type(weights) != header["weights"]:
        raise ValueError("weights")
    return NonnegativeFunction(function, places, weights)


register(NonnegativeFunction.kind, _payload_size, _build, "cells", "constants", "weights", "release")
