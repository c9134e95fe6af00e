"""A combination of kernels fitted to a shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Parameter, UsageError
from hushsum.records import part_of

from ._expressions import combination
from ._kernels import (
    Batch,
    ColumnKernel,
    EuclideanKernel,
    Kernel,
    along_first_column,
    one_of,
    positive_integer,
    positive_number,
)

__all__ = ["FittedKernel", "fit_kernel"]

MOST_SUBSETS = 5000
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class WeightProblem:
    """Find w with few entries, Σ|w| ≤ limit, so that values @ w is close to target."""

    values: Floats
    target: Floats
    most: int
    signed: bool
    limit: float

    def solve(self, method: str, seconds: float) -> tuple[Floats, bool]:
        """The weights, and whether they have the least maximal error."""
        number = self.values.shape[1]
        if method == "least-squares":
            return self._least_squares(), False
        if method == "exhaustive":
            return self._exhaustive(), True
        if method == "auto" or number <= self.most:
            weights, _ = self._program(list(range(number)))
            if np.count_nonzero(weights) <= self.most:
                return weights, True
        return self._mixed_integer(seconds)

    def _program(self, columns: list[int]) -> tuple[Floats, float]:
        """Weights of these columns with the least maximal error: a linear program; and that error."""
        from scipy.optimize import linprog

        values, matrix, bound = self._constraints(columns)
        cost = np.zeros(values + 1)
        cost[-1] = 1.0
        found = linprog(cost, A_ub=matrix, b_ub=bound, bounds=(0.0, None), method="highs")
        # Feasible, since all weights may be 0, and bounded, since the error is not negative.
        assert found.x is not None
        assert found.fun is not None
        return self._weights(found.x, columns), float(found.fun)

    def _constraints(self, columns: list[int]) -> tuple[int, Floats, Floats]:
        """The constraints of the linear program.

        Its variables are the positive and, if allowed, the negative parts of the weights, then the maximal
        error.
        """
        chosen = self.values[:, columns]
        both = np.hstack((chosen, -chosen)) if self.signed else chosen
        ones = np.ones((len(both), 1))
        total = np.append(np.ones(both.shape[1]), 0.0)[np.newaxis]
        matrix = np.vstack((np.hstack((both, -ones)), np.hstack((-both, -ones)), total))
        return both.shape[1], matrix, np.concatenate((self.target, -self.target, [self.limit]))

    def _weights(self, solution: Floats, columns: list[int]) -> Floats:
        parts = solution[:-1]
        own = parts[: len(columns)] - parts[len(columns) :] if self.signed else parts
        weights = np.zeros(self.values.shape[1])
        weights[columns] = np.where(np.abs(own) > _NEGLIGIBLE, own, 0.0)
        return weights

    def _exhaustive(self) -> Floats:
        number = self.values.shape[1]
        size = min(self.most, number)
        if math.comb(number, size) > MOST_SUBSETS:
            rule = f"must have at most {MOST_SUBSETS} subsets for an exhaustive search"
            remedy = "give fewer, or use another method"
            raise UsageError("components", rule, got=math.comb(number, size), remedy=remedy)
        # Smaller subsets are among these, with weights of 0.
        subsets = map(list, itertools.combinations(range(number), size))
        return min((self._program(each) for each in subsets), key=lambda found: found[1])[0]

    def _mixed_integer(self, seconds: float) -> tuple[Floats, bool]:
        from scipy.optimize import Bounds, LinearConstraint, milp

        number = self.values.shape[1]
        every = list(range(number))
        parts, matrix, bound = self._constraints(every)
        # Variables: parts of weights, the maximal error, and a switch for each component.
        switched = np.zeros((number, parts + 1 + number))
        for place in every:
            switched[place, place] = 1.0
            if self.signed:
                switched[place, number + place] = 1.0
            switched[place, parts + 1 + place] = -self.limit
        chosen = np.concatenate((np.zeros(parts + 1), np.ones(number)))[np.newaxis]
        rows = np.vstack((np.hstack((matrix, np.zeros((len(matrix), number)))), switched, chosen))
        upper = np.concatenate((bound, np.zeros(number), [self.most]))
        cost = np.zeros(parts + 1 + number)
        cost[parts] = 1.0
        found = milp(
            cost,
            constraints=LinearConstraint(rows, -np.inf, upper),
            integrality=np.concatenate((np.zeros(parts + 1), np.ones(number))),
            bounds=Bounds(0.0, np.concatenate((np.full(parts + 1, np.inf), np.ones(number)))),
            options={"time_limit": seconds},
        )
        if found.x is None:
            return self._least_squares(), False
        used = [place for place in every if found.x[parts + 1 + place] > 0.5]
        # The switches are exact only up to a tolerance: the weights are found again without them.
        return self._program(used)[0], bool(found.status == 0)

    def _least_squares(self) -> Floats:
        left = list(range(self.values.shape[1]))
        while True:
            weights = self._bounded_squares(left)
            used = [place for place in left if weights[place] != 0.0]
            if len(used) <= self.most:
                return weights
            effect = np.abs(weights[used]) * np.sqrt(np.mean(self.values[:, used] ** 2, axis=0))
            left = [place for place in used if place != used[int(effect.argmin())]]

    def _bounded_squares(self, columns: list[int]) -> Floats:
        """Non-negative least squares, with a price for Σ|w| that keeps it within the limit."""
        from scipy.optimize import nnls

        chosen = self.values[:, columns]
        both = np.hstack((chosen, -chosen)) if self.signed else chosen
        low, high = 0.0, 1e3
        price = low
        for _ in range(30):
            # The square of a price times the sum of all parts is one more equation.
            rows = np.vstack((both, np.full((1, both.shape[1]), price)))
            parts, _ = nnls(rows, np.append(self.target, 0.0), maxiter=50 * both.shape[1])
            if parts.sum() <= self.limit:
                high = price
                if price == 0.0 or high - low < 1e-3 * high:
                    break
            else:
                low = price
            price = math.sqrt(max(low, 1e-6) * high)
        parts = parts if parts.sum() <= self.limit else parts * (self.limit / parts.sum())
        return self._weights(np.append(parts, 0.0), columns)


METHODS = ("auto", "least-squares", "exhaustive", "milp")
MOST_COMPONENTS = 1000
MOST_PLACES = 20_000
"""Distances or pairs: a linear program has two rows for each, and two columns for each component."""
MOST_WEIGHT = 1e6
LARGEST_DISTANCE = 1e30
_POWERS = (1, 2, 4, 8, 16)
_SCALES = 15
_BETWEEN = 4
_PAIRS_AT_A_TIME = 64

Similarity = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FittedKernel:
    """A combination of kernels, and how far it is from its target.

    ``max_error`` and ``rms_error`` are over the distances or pairs that were given; of a function of the
    distance, over places between them too. ``weight_sum`` is Σ|weight|: the noise of a released answer grows
    in proportion to it. ``optimal`` is whether no combination of these components within the limits has a
    smaller maximal error at the given distances or pairs; false for least squares, and where the search ran
    out of time.
    """

    kernel: Kernel
    max_error: float
    rms_error: float
    weight_sum: float
    optimal: bool


def fit_kernel(
    target: Similarity | Sequence[float] | NDArray[Any],
    *,
    components: Sequence[Kernel] | None = None,
    distances: Sequence[float] | NDArray[Any] | None = None,
    pairs: tuple[object, object] | None = None,
    dim: int | None = None,
    most: int = 8,
    signed: bool = True,
    most_weight: float = 4.0,
    method: str = "auto",
    seconds: float = 20.0,
) -> FittedKernel:
    """A linear combination of at most ``most`` kernels that is close to a target similarity.

    Works well for similarities that fall smoothly. It does not work beyond what was given: at distances
    larger than the largest one, or unlike all pairs, the fitted kernel may be anything, so give the whole
    range that records and queries can have.

    Parameters
    ----------
    target : callable, or similarities of the pairs
        A function of an array of distances, if ``distances`` are given; of two arrays of records, row by row,
        if ``pairs`` are. Or the similarities themselves, one for each.
    components : list of Kernel, optional
        To choose from, of the same columns: any kernels that one method can release together. Default:
        Euclidean kernels of 15 bandwidths and the powers 1, 2, 4, 8 and 16, for ``dim`` columns.
    distances : array of shape (n,)
        Where the fit matters. Kernels are compared along the first column.
    pairs : two lists of records, in place of ``distances``
        Record i of the first with record i of the second.
    dim : int, optional
        The number of columns of the default components.
    most : int, default 8
        Of the components. Rows are divided among them.
    signed : bool, default True
        Allow negative weights. Without them a mixture of kernels with a corner has a corner.
    most_weight : float, default 4.0
        The largest sum of the weights' sizes: the noise of an answer grows in proportion to it.
    method : {"auto", "least-squares", "exhaustive", "milp"}
        ``"least-squares"`` is quick, for the mean square error: non-negative least squares, whose smallest
        weights are dropped one by one. The others find the least maximal error: ``"exhaustive"`` by a linear
        program for every subset, ``"milp"`` by mixed-integer programming (SciPy's HiGHS), and ``"auto"`` by a
        linear program over all components, and mixed-integer programming where that uses too many of them.
    seconds : float, default 20.0
        The longest time of mixed-integer programming; the best combination so far is taken then.

    Privacy
    -------
    The target, the distances, the pairs and the components are public, and so is the result: it becomes part
    of every release. Never fit on private records, or on a held-out part of them. Nothing is spent.

    Raises
    ------
    UsageError
        if neither or both of ``distances`` and ``pairs`` are given, there are fewer similarities than pairs,
        there are too many subsets for an exhaustive search, or a number is beyond its range.

    Notes
    -----
    The weights minimise a maximum of absolute values under linear constraints, which is a linear program;
    that at most ``most`` are not zero takes a binary variable for each.

    Examples
    --------
    >>> import hushsum as hs
    >>> import numpy as np
    >>> fit = hs.kernels.fit_kernel(lambda r: np.exp(-r**2 / 2), distances=np.linspace(0, 3, 31), dim=2)
    >>> fit.max_error < 0.02, len(fit.kernel.components) <= 8
    (True, True)
    """
    one_of("method", method, METHODS)
    number = positive_integer("most", most, at_most=64)
    limit = positive_number("most_weight", most_weight, remedy="1 is the weight of a single kernel")
    patience = positive_number("seconds", seconds, remedy="20 suits most fits")
    if limit > MOST_WEIGHT:
        rule = f"must be at most {MOST_WEIGHT:g}: the noise of an answer grows in proportion to it"
        raise UsageError("most_weight", rule, got=f"{limit:g}", remedy="4 suits most fits")
    if (distances is None) == (pairs is None):
        got = "none" if pairs is None else "both"
        raise UsageError("distances", ("or ", Parameter("pairs"), " must be given, and not both"), got=got)
    places = None if distances is None else _distances(distances)
    chosen = _default_components(dim, places) if components is None else _components(components)
    values, wanted = _table(target, chosen, places, pairs)
    problem = WeightProblem(values, wanted, number, signed, limit)
    weights, optimal = problem.solve(method, patience)
    kept = [(float(weight), kernel) for weight, kernel in zip(weights, chosen, strict=True) if weight != 0.0]
    if not kept:
        rule = "must be closer to a combination of the components than to zero"
        remedy = "give other components, or a larger most_weight"
        raise UsageError("target", rule, got="another", remedy=remedy)
    if places is not None and callable(target):
        # What was fitted at some distances may be worse between them.
        finer = np.interp(
            np.arange((len(places) - 1) * _BETWEEN + 1) / _BETWEEN, np.arange(len(places)), np.sort(places)
        )
        values, wanted = _table(target, chosen, finer, None)
    errors = np.abs(values @ weights - wanted)
    largest, rms = float(errors.max()), float(np.sqrt(np.mean(errors**2)))
    return FittedKernel(combination(*kept), largest, rms, float(np.abs(weights).sum()), optimal)


def _table(
    target: Any, components: Sequence[Kernel], places: Floats | None, pairs: tuple[object, object] | None
) -> tuple[Floats, Floats]:
    """Values of the components, shape (n, components), and of the target."""
    if places is not None:
        columns = []
        for kernel in components:
            if not isinstance(kernel, ColumnKernel):
                rule = "must compare columns of numbers, to be fitted at distances"
                remedy = "fit it to pairs"
                raise UsageError("components", rule, got=f"the {kernel.name} kernel", remedy=remedy)
            columns.append(along_first_column(kernel, places))
        wanted = target(places) if callable(target) else target
        values = np.column_stack(columns)
    else:
        assert pairs is not None
        if not isinstance(pairs, tuple | list) or len(pairs) != 2:
            raise UsageError("pairs", "must be two lists of records", got=type(pairs).__name__)
        first, second = pairs
        values = np.column_stack([_of_pairs(kernel, first, second) for kernel in components])
        wanted = target(first, second) if callable(target) else target
    similar = _real_numbers(wanted)
    if similar is None or len(similar) != len(values) or not (np.abs(similar) <= MOST_WEIGHT).all():
        rule = f"must give a similarity, at most {MOST_WEIGHT:g} in size, for every distance or pair"
        raise UsageError("target", rule, got="another number of them, or one that is larger or no number")
    return values, similar


def _real_numbers(given: Any) -> Floats | None:
    """Given numbers in one dimension; None if they are no real numbers."""
    try:
        found = np.asarray(given)
        return None if found.dtype.kind == "c" else np.asarray(found, np.float64).reshape(-1)
    except (TypeError, ValueError):
        return None


def _components(components: Any) -> list[Kernel]:
    try:
        given = list(components)
    except TypeError:
        given = []
    if not 1 <= len(given) <= MOST_COMPONENTS or not all(isinstance(each, Kernel) for each in given):
        rule = f"must be from 1 to {MOST_COMPONENTS} kernels"
        raise UsageError("components", rule, got="others", remedy="leave them out for Euclidean kernels")
    return given


def _of_pairs(kernel: Kernel, first: object, second: object) -> Floats:
    records: Batch = kernel.prepare(first)
    queries: Batch = kernel.prepare(second, clip=False)
    if len(records) != len(queries):
        raise UsageError("pairs", "must be two lists of one length", got="two lengths")
    if len(records) > MOST_PLACES:
        raise UsageError("pairs", f"must be at most {MOST_PLACES}", got=len(records))
    found = np.empty(len(records))
    for start in range(0, len(records), _PAIRS_AT_A_TIME):
        stop = start + _PAIRS_AT_A_TIME
        block = kernel.prepared_similarity(part_of(records, start, stop), part_of(queries, start, stop))
        found[start:stop] = np.diagonal(block)
    return found


def _distances(distances: Any) -> Floats:
    places = _real_numbers(distances)
    if (
        places is None
        or not 2 <= len(places) <= MOST_PLACES
        or not ((places >= 0.0) & (places <= LARGEST_DISTANCE)).all()
        or places.max() < 1.0 / LARGEST_DISTANCE
    ):
        rule = f"must be from 2 to {MOST_PLACES} numbers from 0 to {LARGEST_DISTANCE:g}, and not all 0"
        raise UsageError("distances", rule, got="others")
    return places


def _default_components(dim: int | None, places: Floats | None) -> list[Kernel]:
    if dim is None or places is None:
        both = (Parameter("dim"), " and ", Parameter("distances"))
        raise UsageError("components", ("must be given, or ", *both, " for Euclidean ones"), got="none")
    largest = float(places.max())
    return [
        EuclideanKernel(dim=dim, bandwidth=float(f"{bandwidth:.4g}"), power=power)
        for power in _POWERS
        for bandwidth in np.geomspace(largest / 6.0, 20.0 * largest, _SCALES)
    ]
