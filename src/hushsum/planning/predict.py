"""Predict the error of a release from declared quantities; private data never comes near this module."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from hushsum.bases.hash_rows import HashRows
from hushsum.bases.race_theory import rows_for_laplace
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel, kernel_class
from hushsum.kernels.parameters import positive_integer
from hushsum.planning.plan import Option, Plan
from hushsum.planning.spread import Spread, bounded_spread, estimated_spread
from hushsum.privacy.calibration import (
    COUNT_SHARE,
    IntegerNoise,
    gaussian_noises,
    laplace_noise,
    split_epsilon,
)
from hushsum.privacy.claim import Promise, exact
from hushsum.privacy.relation import Relation
from hushsum.privacy.sensitivity import Sensitivity

DEFAULT_DENSITY = 0.01
COMPARISON_DELTA = 1e-6
_ROWS = (100, 200, 500, 1000, 2000, 5000)
_NANOSECONDS_INCREMENT = 0.6
_NANOSECONDS_PRODUCT = 0.03
_HEADER_BYTES = 1000
_NORMAL_MEAN_ABSOLUTE = math.sqrt(2.0 / math.pi)


def plan(
    *,
    records: int,
    dim: int | None = None,
    epsilon: float | Sequence[float] | None = None,
    delta: float | None = None,
    rho: float | None = None,
    bandwidth: float | None = None,
    kernel: str | Kernel = "euclidean",
    rows: int | Sequence[int] | None = None,
    width: int = 1000,
    seed: int = 0,
    density: float | None = None,
    public: object = None,
    queries: object = None,
    relation: str | Relation = Relation.ADD_REMOVE,
    count_share: float | Fraction = COUNT_SHARE,
    max_per_unit: int | None = None,
) -> Plan:
    """The predicted error of each way to release, before any budget is spent.

    Parameters
    ----------
    records : int
        The number of records, declared or guessed; under add/remove the true number is private, so do not
        pass ``len(X)``.
    dim, bandwidth, kernel
        As for the kernel; a kernel object replaces all three.
    epsilon : float or list of float
        Pure ε unless ``delta`` is given. Without ``delta``, options with δ = 1e-6 are shown for comparison
        and are not chosen as the best.
    delta, rho : float
        As for a release.
    rows, width : int or list of int
        Table sizes to compare.
    density : float, default 0.01
        The mean kernel value f(q)/N of the queries that matter; the hashing part is then a bound.
    public : records, optional
        Public data that resemble the private ones. The hashing part is then an estimate.
    queries : records, optional
        Public queries to estimate it at; default: the public records themselves.
    max_per_unit : int, optional
        As for the tally: plan for persons with up to this many records.

    Examples
    --------
    >>> import hushsum as hs
    >>> p = hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=5.0)
    >>> p.best.mechanism, p.best.rows
    ('discrete laplace', 5000)
    """
    number = positive_integer("records", records, at_most=1 << 50)
    chosen = kernel if isinstance(kernel, Kernel) else _kernel(kernel, dim, bandwidth)
    basis = HashRows(chosen, 1, width, seed)
    spread = (
        bounded_spread(DEFAULT_DENSITY if density is None else density, basis.fold_rate)
        if public is None
        else estimated_spread(chosen, width=width, seed=seed, records=number, public=public, queries=queries)
    )
    per_unit = (
        None if max_per_unit is None else positive_integer("max_per_unit", max_per_unit, at_most=1 << 20)
    )
    neighbours = Relation.of(relation)
    a_row = basis.sensitivity(neighbours).times(per_unit or 1)
    asked = [Promise.of(epsilon=e, delta=delta, rho=rho) for e in _each(epsilon)]
    shown = list(asked)
    if delta is None and rho is None:
        shown += [Promise.of(epsilon=promise.epsilon, delta=COMPARISON_DELTA) for promise in asked]
    options: list[Option] = []
    for promise in shown:
        group = []
        for count in _row_choices(rows, promise, number, a_row):
            noise = _noise(chosen, count, width, seed, promise, neighbours, count_share, per_unit)
            group.append(_option(basis, count, promise, noise, spread, number, asked=promise in asked))
        options += sorted(group, key=lambda option: option.error)
    return Plan(tuple(options), number, float(spread.density.mean()), spread.source)


def _each(epsilon: float | Sequence[float] | None) -> Iterable[float | None]:
    if isinstance(epsilon, Sequence):
        if not epsilon:
            raise UsageError("epsilon must hold at least one value, got an empty list; try [0.5, 1.0]")
        return epsilon
    return [epsilon]


def _kernel(name: str, dim: int | None, bandwidth: float | None) -> Kernel:
    needed = {"dim": dim, "bandwidth": bandwidth}
    taken = getattr(kernel_class(name), "__dataclass_fields__", {})
    for field in ("dim", "bandwidth"):
        if field in taken and needed[field] is None:
            raise UsageError(f"{field} must be given to plan for the {name} kernel; pass {field}=...")
    return kernel_class(name)(**{field: value for field, value in needed.items() if field in taken})


def _row_choices(
    rows: int | Sequence[int] | None, promise: Promise, records: int, moved: Sensitivity
) -> Sequence[int]:
    if rows is not None:
        return sorted(
            {
                positive_integer("rows", r, at_most=1 << 24)
                for r in (rows if isinstance(rows, Sequence) else [rows])
            }
        )
    if promise.pure:
        assert promise.epsilon is not None
        auto = rows_for_laplace(records, float(promise.epsilon) / moved.l1, _ROWS[-1])
        return sorted({*_ROWS, auto})
    return _ROWS


def _noise(
    kernel: Kernel,
    rows: int,
    width: int,
    seed: int,
    promise: Promise,
    relation: Relation,
    count_share: float | Fraction,
    per_unit: int | None,
) -> IntegerNoise:
    """The noise a release with these rows would draw; the same calibration as the release itself."""
    moved = HashRows(kernel, rows, width, seed).sensitivity(relation).times(per_unit or 1)
    share = exact("count_share", count_share)
    count = per_unit or (0 if relation is Relation.REPLACE else 1)
    if promise.pure:
        table_epsilon, _ = split_epsilon(promise, private_count=count > 0, count_share=share)
        return laplace_noise(moved.l1, table_epsilon)
    return gaussian_noises(promise, moved, count=count, count_share=share)[0]


def _option(
    basis: HashRows,
    rows: int,
    promise: Promise,
    noise: IntegerNoise,
    spread: Spread,
    records: int,
    *,
    asked: bool,
) -> Option:
    keep = 1.0 / (1.0 - basis.fold_rate)
    noise_variance = noise.variance / rows * (keep / records) ** 2
    hashing_variance = spread.row_variance / rows * keep**2
    # The mean over few rows of Laplace noise is more peaked than normal: excess kurtosis 3/rows moves E|x|
    # by −1/(8·rows).
    peaked = 1.0 - 1.0 / (8.0 * rows) if noise.mechanism.endswith("laplace") else 1.0
    kernel, width = basis.kernel, basis.width
    dim = getattr(kernel, "dim", 1) * getattr(kernel, "power", 1) * getattr(kernel, "bits", 1)
    cell = 2 if records + 12.0 * math.sqrt(noise.variance) < 2**15 else 4
    return Option(
        method="race",
        mechanism=noise.mechanism,
        epsilon=None if promise.epsilon is None else float(promise.epsilon),
        delta=float(promise.delta),
        rho=None if promise.rho is None else float(promise.rho),
        rows=rows,
        width=width,
        noise=_NORMAL_MEAN_ABSOLUTE * math.sqrt(noise_variance) * peaked,
        hashing=_NORMAL_MEAN_ABSOLUTE * float(np.sqrt(hashing_variance).mean()),
        error=_NORMAL_MEAN_ABSOLUTE * float(np.sqrt(noise_variance + hashing_variance).mean()),
        size=rows * width * cell + _HEADER_BYTES,
        seconds=records * rows * (_NANOSECONDS_INCREMENT + _NANOSECONDS_PRODUCT * dim) * 1e-9,
        asked=asked,
    )
