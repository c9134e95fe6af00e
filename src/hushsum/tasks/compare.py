"""Compare two released functions: where they differ, how far the distributions are apart, and a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from hushsum._types import Floats, RoleType, is_number
from hushsum.errors import ServiceRefused, UsageError, shown
from hushsum.releases.answers import Points
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.forwarded_properties import ForwardedFacts
from hushsum.releases.noisy_table import NoisyTable
from hushsum.tasks.comparison_result import Comparison
from hushsum.tasks.difference_errors import DifferenceErrors, share_release
from hushsum.tasks.probe_points import given_points, needed_bounds, probe_points, stderr_in
from hushsum.tasks.two_sample_test import Coordinates, filtered_test, separate_test, squared_distance

_POINTS: Final = 128
_POINTS_OF_MORE_COLUMNS: Final = 256
_SEPARATE: Final = 40
"""Points of Bonferroni's inequality."""


@runtime_checkable
class _Remote(Protocol, metaclass=RoleType):
    def local(self) -> ReleasedFunction:
        """The function itself."""


def compare(
    f: ReleasedFunction,
    g: ReleasedFunction,
    *,
    at: object = None,
    significance: float = 0.05,
    cluster_size: float = 1.0,
    names: Sequence[str] = ("f", "g"),
) -> Comparison:
    """Compare two released functions: the difference with its error band, MMD², and a two-sample test.

    Post-processing: it spends nothing. The null distribution of the test contains the noise of both releases
    and the sampling error of both sets of records, estimated from what was released.

    It works best for two releases with the same basis (equal ``seed``, sizes and bounds): then the error of
    the basis has no part in the test. Functions with different bases, or of methods that state no covariance
    of their errors, are compared point by point with Bonferroni's inequality, which detects less.

    Parameters
    ----------
    f, g : ReleasedFunction
        Of the same kernel, columns and bounds, of different records, and not derived from one release.
        Functions in a service are downloaded where their owner allows it.
    at : queries, optional
        2 to 1000 public points at which to compare. Default: points where the functions show records, and
        points all over the bounds. Required for functions without bounds, and of sets.
    significance : float, default 0.05
        The level of the test.
    cluster_size : float, default 1
        How many records come together, as those of one person: sampling variances are multiplied by it.
    names : pair of str
        What the two are called in descriptions.

    Returns
    -------
    Comparison

    Raises
    ------
    UsageError
        if the two cannot be compared: other kernels, columns or bounds, one release twice, steps of one
        stream.

    Privacy
    -------
    Everything is computed from released functions; no claim changes. Releases of the same persons add up, as
    for any two releases.

    Notes
    -----
    Samples are assumed to be independent. Two releases of the *same* records differ by noise alone: the test
    then rejects less often than its level. The test without noise is that of Gretton et al., *A kernel
    two-sample test*, JMLR 2012, with the null distribution of its limit.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> rng = np.random.default_rng(0)
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=0.5)
    >>> first, second = (hs.grid(kernel, bounds=(-4, 4)) for _ in range(2))
    >>> f = first.add(rng.normal(0.0, 1.0, (5000, 1))).release(epsilon=1.0)
    >>> g = second.add(rng.normal(0.5, 1.0, (5000, 1))).release(epsilon=1.0)
    >>> result = hs.compare(f, g)
    >>> result.differ, bool(result.mmd_squared.value > 3 * result.mmd_squared.stderr)
    (True, True)
    """
    if not is_number(significance) or not 0.0 < significance < 1.0:
        raise UsageError(
            parameter="significance",
            rule="must be between 0 and 1",
            got=shown(significance),
            remedy="try 0.05",
        )
    if not is_number(cluster_size) or not 1.0 <= cluster_size < float("inf"):
        raise UsageError(
            parameter="cluster_size",
            rule="must be at least 1",
            got=shown(cluster_size),
            remedy="leave it out for 1",
        )
    if isinstance(names, str) or len(names) != 2:
        raise UsageError(parameter="names", rule="must be two names", remedy="leave them out")
    f, g = _at_hand("f", f), _at_hand("g", g)
    _check_comparable(f, g)
    pair, dependence = _aligned(f, g)
    f, g = pair
    points = _points(pair, at)
    if np.array_equal(pair[0](points), pair[1](points)):
        raise _same_release()
    errors = DifferenceErrors.at(pair, points, dependence=dependence, cluster_size=cluster_size)
    labels = (str(names[0]), str(names[1]))
    coordinates = _coordinates(pair, points) if dependence else None
    if coordinates is None:
        some = points[:: max(1, len(points) // _SEPARATE)]
        variances = errors.variances(some, alpha=significance / len(some))
        test = separate_test(errors.values(some), np.sqrt(variances))
        return Comparison(f, g, test, None, None, None, significance, labels, errors)
    found = coordinates.values(errors.values(points))
    noise = coordinates.covariance(errors.noise(points))
    sampling = coordinates.covariance(errors.sampling(points))
    return Comparison(
        f,
        g,
        filtered_test(
            found,
            coordinates.covariance(errors.sampling(points, pooled=True)),
            noise,
            coordinates.moves(lambda at: _mean(pair, at), f.kernel, points),
        ),
        squared_distance(found, noise + sampling),
        squared_distance(found, noise),
        coordinates.captured,
        significance,
        labels,
        errors,
    )


def _at_hand(name: str, function: ReleasedFunction) -> ReleasedFunction:
    if not isinstance(function, ReleasedFunction):
        raise UsageError(
            parameter=name,
            rule="must be a released function",
            got=type(function).__name__,
            remedy="release a tally, or load a file with hs.load",
        )
    if not isinstance(function, _Remote):
        return function
    try:
        return function.local()
    except ServiceRefused:
        # It may be queried and not be downloaded: its answers and standard errors are enough.
        return function


def _check_comparable(f: ReleasedFunction, g: ReleasedFunction) -> None:
    for what, same in (
        ("kernel", f.kernel == g.kernel),
        ("columns", f.columns == g.columns),
        ("bounds", f.bounds == g.bounds),
    ):
        if not same:
            raise UsageError(
                rule=f"functions that are compared must have the same {what}",
                got="others",
                remedy="release both with the same parameters"
                + (", or read a grid with_kernel(...)" if what == "kernel" else ""),
            )
    one, other = _table_of(f), _table_of(g)
    if one is None or other is None:
        return
    steps = one.stream_step, other.stream_step
    if steps[0] is not None and steps[1] is not None and steps[0].stream == steps[1].stream:
        raise UsageError(
            rule="steps of one stream share records and noise",
            got="two of them",
            remedy="use hs.drift(steps)",
        )
    if share_release(one, other):
        raise _same_release()


def _same_release() -> UsageError:
    return UsageError(
        rule="functions that are compared must be different releases, with noise of their own",
        got="one release twice, or one derived from the other",
        remedy="give the other release",
    )


def _table_of(function: Any) -> NoisyTable | None:
    """The table that a function reads, directly or through another one."""
    while isinstance(function, ForwardedFacts):
        function = function.function
    return function if isinstance(function, NoisyTable) else None


def _aligned(
    f: ReleasedFunction, g: ReleasedFunction
) -> tuple[tuple[ReleasedFunction, ReleasedFunction], bool]:
    """Both with the rows that both have, and whether they are then tables of one basis."""
    if not isinstance(f, NoisyTable) or not isinstance(g, NoisyTable):
        return (f, g), False
    rows = min(f.rows, g.rows)
    try:
        one, other = f.first_rows(rows), g.first_rows(rows)
    except UsageError:
        return (f, g), False
    same = one.basis.fingerprint == other.basis.fingerprint
    return ((one, other), True) if same else ((f, g), False)


def _points(pair: tuple[ReleasedFunction, ReleasedFunction], at: object) -> Points:
    f = pair[0]
    if at is not None:
        return given_points(at, f)
    box = needed_bounds(f)
    noise = sum(stderr_in(each, box) for each in pair) / 2.0
    number = _POINTS if f.dim == 1 else _POINTS_OF_MORE_COLUMNS
    return probe_points(lambda at: _mean(pair, at), noise, f.kernel, box, number)


def _mean(pair: tuple[ReleasedFunction, ReleasedFunction], Q: object) -> Floats:
    return np.asarray((pair[0](Q) + pair[1](Q)) / 2.0)


def _coordinates(pair: tuple[ReleasedFunction, ReleasedFunction], points: Points) -> Coordinates | None:
    table = pair[0]
    assert isinstance(table, NoisyTable)
    found = Coordinates.of(table.record_answers(points, points))
    return Coordinates.of(table.kernel.similarity(points, points)) if found is None else found
