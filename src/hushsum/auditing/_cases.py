"""The cases of audits: adversarial records and examples of every kernel and basis, the worst pairs of every
sampler of noise, and neighbours for mechanisms that add noise to a function.

A basis or kernel without registered cases fails a contract test, and `hushsum.audit` refuses it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushsum import kernels, tables
from hushsum._types import Floats, Integers
from hushsum.errors import UsageError
from hushsum.kernels import Kernel
from hushsum.methods import (
    GAP_SHARE,
    TARGET_BITS,
    fit_machines,
    perturbed_machines,
    perturbed_posterior,
    smoother,
)
from hushsum.privacy import (
    BINOMIAL,
    GAMMA,
    GAUSSIAN,
    LAPLACE,
    SKELLAM,
    IntegerNoise,
    Promise,
    Relation,
    ReleaseNoise,
    exact,
    stated_mechanism,
)
from hushsum.privacy.noise import (
    NoiseSource,
    exponential_choice,
    exponential_distribution,
    gamma_radius,
    log_odds_coins,
    permute_and_flip,
    permute_and_flip_distribution,
)
from hushsum.records import (
    Bounds,
    CategoryColumn,
    DateColumn,
    DeclaredColumn,
    FlagColumn,
    Graph,
    NumberColumn,
    UnitBall,
)
from hushsum.releases import CoefficientFunction
from hushsum.tables import Basis
from hushsum.tally import Tally

from ._report import AuditRow
from ._sensitivity import Adversary, Pool, code_records, dense_records, dense_rows, set_records
from ._statistics import (
    Chances,
    Draw,
    Separated,
    allowed_distance,
    audit_choice,
    audit_gaussian,
    audit_laplace,
    lattice_chances,
    normal_chances,
)

Attacked = TypeVar("Attacked")


@dataclass(frozen=True, slots=True)
class Cases(Generic[Attacked]):
    """How to attack a kernel or a basis: the records for it, and examples that between them run every loop.

    ``of_kernel`` makes a basis for a kernel, where it counts several; None for a kernel that it does not.
    """

    pool: Adversary
    examples: tuple[Attacked, ...]
    of_kernel: Callable[[Kernel], Basis | None] | None = None


@dataclass(frozen=True, slots=True)
class MechanismCase:
    """Two neighbours of a whole mechanism that adds Gaussian noise to a function.

    ``name`` is the name of the mechanism, ``make`` sets up the neighbours for any promise, and ``promise`` is
    the promise audited by default.
    """

    name: str
    pair: str
    make: Callable[[Promise], Separated]
    promise: Promise
    thorough: bool = False

    def set_up(self) -> Separated:
        """The neighbours, under the default promise."""
        return self.make(self.promise)


# Packages above this layer register their own cases; imported by name, when they are needed.
_HIGHER: Final = (
    "hushsum.baselines._audit_cases",
    "hushsum.models._audit_cases",
    "hushsum.secret_functions._audit_cases",
    "hushsum.streams._audit_cases",
)

_KERNELS: dict[str, Cases[Kernel]] = {}
_BASES: dict[str, Cases[Basis]] = {}
_MECHANISMS: list[MechanismCase] = []


def register_kernel(adversary: Adversary, *examples: Kernel) -> None:
    """Make known how a kernel is attacked: with which records, and examples of it."""
    _KERNELS[examples[0].name] = Cases(adversary, examples)


def register_basis(
    pool: Adversary, *examples: Basis, of_kernel: Callable[[Kernel], Basis | None] | None = None
) -> None:
    """Make known how a basis is attacked: with which records, and examples of it."""
    _BASES[examples[0].name] = Cases(pool, examples, of_kernel)


def register_mechanism(*cases: MechanismCase) -> None:
    """Make neighbours of whole mechanisms known."""
    _MECHANISMS.extend(cases)


def _load_higher() -> None:
    for name in _HIGHER:
        importlib.import_module(name)


def kernel_cases(name: str) -> Cases[Kernel]:
    """The cases of a kernel; refuses one that nothing is known about."""
    if name not in _KERNELS:
        raise UsageError(
            f"the kernel {name!r} has no audit: no table of counts releases it, or it was never registered",
            remedy=f"audit one of {', '.join(sorted(_KERNELS))}",
        )
    return _KERNELS[name]


def basis_cases(name: str) -> Cases[Basis]:
    """The cases of a basis; refuses one that nothing is known about."""
    if name not in _BASES:
        _load_higher()
    if name not in _BASES:
        remedy = "register its worst pairs in hushsum.auditing"
        raise UsageError(f"the basis {name!r} has no audit", remedy=remedy)
    return _BASES[name]


def audited_kernels() -> list[str]:
    """The registered kernels, sorted."""
    return sorted(_KERNELS)


def audited_bases() -> list[str]:
    """The registered bases, sorted."""
    _load_higher()
    return sorted(_BASES)


def mechanism_cases(*, thorough: bool = True) -> list[MechanismCase]:
    """The registered neighbours of whole mechanisms, without the long ones unless ``thorough``."""
    _load_higher()
    return [case for case in _MECHANISMS if thorough or not case.thorough]


def pool_for(basis: Basis, rng: np.random.Generator) -> Pool:
    """Adversarial records for a basis."""
    return basis_cases(basis.name).pool(basis, rng)


def _box(ends: list[tuple[float, float]]) -> Bounds:
    return Bounds.declared(ends, len(ends), "an audit")


register_kernel(
    dense_records,
    kernels.EuclideanKernel(dim=3, bandwidth=1.0),
    kernels.EuclideanKernel(dim=33, bandwidth=2.0, power=3),
    kernels.EuclideanKernel(dim=100, bandwidth=1.0, projection="structured"),
)
register_kernel(
    dense_records, kernels.ManhattanKernel(dim=3, bandwidth=2.0), kernels.ManhattanKernel(2, 4.0, power=2)
)
register_kernel(
    dense_records,
    kernels.AngularKernel(dim=4, bits=6),
    kernels.AngularKernel(dim=4, bits=4, power=10),
    kernels.AngularKernel(dim=100, bits=6, projection="structured"),
)
register_kernel(
    dense_records,
    kernels.AsymmetricAngularKernel(dim=4, bits=6),
    kernels.AsymmetricAngularKernel(dim=3, bits=4, power=10, radius=2.5),
)
register_kernel(set_records, kernels.JaccardKernel(), kernels.JaccardKernel(power=2))
register_kernel(code_records, kernels.HammingKernel(dim=6), kernels.HammingKernel(dim=6, power=2))


def _product_records(kernel: kernels.ProductKernel, rng: np.random.Generator) -> Pool:
    """Records whose columns are chosen factor by factor, as an adversary of the factor's kernel would choose
    them. Pairs of records recur that differ in the columns of one factor alone, or in all columns.
    """
    pools = [kernel_cases(each.kernel.name).pool(each.kernel, rng) for each in kernel.factors]
    records: list[list[object]] = []
    for _ in range(100):
        record: list[object] = [0] * kernel.dim
        for each, pool in zip(kernel.factors, pools, strict=True):
            chosen = pool[int(rng.integers(len(pool)))]
            values = [list(chosen)] if each.kernel.dim is None else np.asarray(chosen).tolist()  # type: ignore[call-overload]
            for column, value in zip(each.columns, values, strict=True):
                record[column] = value
        records.append(record)
        if len(records) > 1:
            other = list(records[-2])
            for column in kernel.factors[0].columns:
                other[column] = record[column]
            records.append(other)
    return [*records, *records[:4]]


def _combination_records(kernel: kernels.CombinationKernel, rng: np.random.Generator) -> Pool:
    """The records that attack the first component; the others have the same columns."""
    first = kernel.components[0].kernel
    return kernel_cases(first.name).pool(first, rng)


def _scaled_records(kernel: kernels.ScaledKernel, rng: np.random.Generator) -> Pool:
    """The records that attack the kernel, in the units of the columns."""
    units, most = np.array(kernel.units), float(np.finfo(np.float32).max)
    inner = kernel_cases(kernel.kernel.name).pool(kernel.kernel, rng)
    scaled = (np.clip(np.asarray(each, np.float64) * units, -most, most) for each in inner)
    # As they come, and in the units of the kernel: some of these exceed float32 where they are divided.
    return [*(each.astype(np.float32) for each in scaled), *inner[:20]]


_MIXED = (
    kernels.on_columns(kernels.EuclideanKernel(dim=2, bandwidth=1.0), [0, 2], of=4)
    * kernels.on_columns(kernels.HammingKernel(dim=1), 1, of=4)
    * kernels.on_columns(kernels.JaccardKernel(), 3, of=4)
)
register_kernel(
    _product_records,
    _MIXED,
    kernels.EuclideanKernel(dim=3, bandwidth=1.0) * kernels.ManhattanKernel(dim=3, bandwidth=4.0),
    kernels.on_columns(kernels.AngularKernel(dim=3, bits=3), [0, 1, 2], of=4)
    * kernels.on_columns(kernels.EuclideanKernel(1, 1.0), 3, of=4),
)
register_kernel(
    _scaled_records,
    kernels.scaled_by(kernels.EuclideanKernel(dim=3, bandwidth=0.1), (120.0, 3e5, 0.01)),
    kernels.scaled_by(kernels.ManhattanKernel(dim=2, bandwidth=0.5, power=2), (7.0, 1e-3)),
)
register_kernel(
    _combination_records,
    1.5 * kernels.EuclideanKernel(dim=3, bandwidth=1.0)
    - 0.5 * kernels.EuclideanKernel(dim=3, bandwidth=4.0, power=2),
    0.25 * _MIXED + 0.75 * kernels.on_columns(kernels.HammingKernel(dim=1), 1, of=4),
    kernels.JaccardKernel() - 3.0 * kernels.JaccardKernel(power=2),
)


def _counted(rows: type[Basis], kernel: Kernel) -> Basis | None:
    """The table of a kernel; None for a kernel that tables of the other class count."""
    # 70 rows and 53 cells: full and partial panels of rows, and few enough cells that a stray count would
    # fall on a used one.
    kind = tables.DividedRows if isinstance(kernel, kernels.HashableCombination) else tables.HashRows
    return kind(kernel, rows=70, width=53, seed=11) if kind is rows else None


def _kernel_pool(basis: tables.HashRows | tables.DividedRows, rng: np.random.Generator) -> Pool:
    """The records that attack the kernel of a basis."""
    return kernel_cases(basis.kernel.name).pool(basis.kernel, rng)


def _increments_pool(basis: tables.IncrementRows, rng: np.random.Generator) -> Pool:
    """A record, its opposite and the zero vector, each repeated, and the records that attack any kernel.

    Where a record is replaced by its opposite, increments of opposite signs change places; the zero vector is
    its own opposite.
    """
    worst = rng.normal(size=basis.kernel.dim).astype(np.float32) * 100.0
    return [*[worst, -worst, np.zeros_like(worst)] * 40, *dense_records(basis.kernel, rng)]


_HASHED = [kernel for name in audited_kernels() for kernel in kernel_cases(name).examples]
for rows in (tables.HashRows, tables.DividedRows):
    made = (_counted(rows, kernel) for kernel in _HASHED)
    register_basis(
        _kernel_pool, *(each for each in made if each is not None), of_kernel=partial(_counted, rows)
    )
register_basis(
    _increments_pool,
    tables.IncrementRows(kernels.AsymmetricAngularKernel(dim=3, bits=4), 40, 16, 11, (1, 1)),
    tables.IncrementRows(kernels.AsymmetricAngularKernel(dim=3, bits=4), 40, 16, 12, (1, -1)),
    tables.IncrementRows(kernels.EuclideanKernel(dim=2, bandwidth=1.0), 40, 53, 13, (3, -1)),
)


_GRAPHS = [
    Graph(directed=directed, **kind)
    for directed in (False, True)
    for kind in ({}, {"nodes": 40}, {"rows_listed": True})
]
register_basis(
    # Any sets: the reader of edges makes rows of 64-bit ids.
    _kernel_pool,
    *(
        tables.AdjacencyRows(kernels.JaccardKernel(), 70, 7 if each.nodes else 53, 11, graph=each)
        for each in _GRAPHS
    ),
)


def _bins_pool(basis: tables.Bins, rng: np.random.Generator) -> Pool:
    """Records that attack any kernel, corners of the box, and edges of cells, where rounding decides."""
    low, high, width = np.array(basis.bounds.low), np.array(basis.bounds.high), basis.grid.width
    edges = low + rng.integers(0, np.array(basis.bins) + 1, (24, len(low))) * width
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *edges, *np.nextafter(edges, high)]


register_basis(
    _bins_pool,
    tables.Bins((40,), Bounds((-3.0,), (3.0,))),
    tables.Bins((7, 9), Bounds((-3.0, 0.0), (3.0, 0.3))),
    tables.Bins((3, 1, 5), Bounds((-3.0,) * 3, (3.0,) * 3)),
)


def _grid_pool(basis: tables.GridWeights, rng: np.random.Generator) -> Pool:
    """Records that attack any kernel, the corners of the box, and middles and ends of cells, where weights of
    even and of odd degree are most uneven.
    """
    low, high, spacing = (np.array(side) for side in (basis.bounds.low, basis.bounds.high, basis.spacing))
    middles = low + (rng.integers(0, np.array(basis.cells), (24, len(low))) + 0.5) * spacing
    edges = low + rng.integers(0, np.array(basis.cells) + 1, (24, len(low))) * spacing
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *middles, *edges]


# Cells, and the degrees to count them with.
_GRIDS: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = [
    ((40,), [(2,), (5,)]),
    ((12,), [(0,)]),
    ((8, 9), [(3, 3), (0, 4), (0, 0), (2, 5)]),
    ((6, 7, 8), [(4, 4, 4)]),
    ((3,) * 4, [(3,) * 4]),
]

register_basis(
    _grid_pool,
    *(
        tables.GridWeights(cells, Bounds((-3.0,) * len(cells), (3.0,) * len(cells)), degrees)
        for cells, listed in _GRIDS
        for degrees in listed
    ),
)


_ATTEMPTS = 1 << 8
_PAIRS = 1 << 13


def _features_pool(basis: tables.FourierFeatures, rng: np.random.Generator) -> Pool:
    """Two distant records, each repeated so that they meet often, and the records that attack any kernel.

    A phase of an odd eighth of a turn has the largest |cos| + |sin|, and half a turn more the opposite signs.
    With as many columns as features, or more, a record can have such phases on all of them. In a box, the two
    are the furthest of many random pairs.
    """
    solved = _opposite_records(basis, rng) if basis.bounds is None else _far_records(basis, basis.bounds, rng)
    return [*np.tile(solved, (20, 1)), *dense_records(basis.kernel, rng)]


def _opposite_records(basis: tables.FourierFeatures, rng: np.random.Generator) -> NDArray[np.float32]:
    """Two records of one group, half a turn apart on all features of it; shape (2, columns).

    Whole turns more change the hash that picks a record's group, and not its features.
    """
    rows = np.flatnonzero(np.arange(basis.features) // basis.block % basis.groups == 0)
    frequencies = basis.frequencies[rows].astype(np.float64)
    phases = rng.integers(0, 4, len(rows)) / 4 + 0.125
    found = []
    for wanted in (phases, phases + 0.5):
        for _ in range(_ATTEMPTS):
            turns = rng.integers(-1, 2, len(rows)) if basis.groups > 1 else 0
            record = np.linalg.lstsq(frequencies, wanted + turns, rcond=None)[0].astype(np.float32)
            if basis.groups == 1 or basis.group_of(record[np.newaxis])[0] == 0:
                break
        found.append(record)
    return np.array(found)


def _far_records(basis: tables.FourierFeatures, box: Bounds, rng: np.random.Generator) -> NDArray[np.float64]:
    """The two records of a box, shape (2, columns), whose integers differ most among random pairs."""
    inside = rng.uniform(-1.0, 1.0, (2 * _PAIRS, box.dim))
    inside[: _PAIRS // 4] = np.sign(inside[: _PAIRS // 4]) * np.sqrt(rng.random((_PAIRS // 4, 1)))
    # A quarter of the pairs are opposite: their difference is as long as the box allows.
    inside[_PAIRS : _PAIRS + _PAIRS // 4] = -inside[: _PAIRS // 4]
    records = box.centre + inside * box.half_width
    maps = (basis.map, basis.axis_map) if basis.axes else (basis.map,)
    integers = np.concatenate([each.integers(basis.prepare(records).arrays[0]) for each in maps], axis=1)
    moved = np.abs(integers[:_PAIRS].astype(np.int64) - integers[_PAIRS:]).sum(axis=(1, 2))
    furthest = int(moved.argmax())
    return records[[furthest, _PAIRS + furthest]]


_MATERN = kernels.MaternKernel(dim=20, bandwidth=3.0, smoothness=0.5)


def _features_example(
    dim: int, features: int, seed: int, half_width: float | None = None, axes: int = 0
) -> tables.FourierFeatures:
    box = None if half_width is None else Bounds((-half_width,) * dim, (half_width,) * dim)
    kernel = kernels.GaussianKernel(dim=dim, bandwidth=1.0)
    return tables.FourierFeatures(kernel, features, seed, bounds=box, axes=axes)


register_basis(
    _features_pool,
    _features_example(1, 1, 1),
    _features_example(40, 37, 2),
    tables.FourierFeatures(kernels.LaplacianKernel(dim=20, bandwidth=4.0), 17, 3),
    tables.FourierFeatures(kernels.MaternKernel(dim=20, bandwidth=4.0), 17, 8),
    tables.FourierFeatures(kernels.GaussianKernel(dim=20, bandwidth=4.0) * _MATERN, 17, 9),
    tables.FourierFeatures(0.5 * kernels.GaussianKernel(dim=20, bandwidth=4.0) + 0.5 * _MATERN, 17, 10),
    tables.FourierFeatures(kernels.scaled_by(_MATERN, [0.5 + column for column in range(20)]), 17, 11),
    tables.FourierFeatures(kernels.GaussianKernel(dim=20, bandwidth=4.0), 17, 12, sobol=True),
    _features_example(2, 2, 4, half_width=50.0),
    _features_example(1, 3, 1, half_width=2.0),
    _features_example(2, 6, 3, half_width=1.5),
    _features_example(1, 3, 1, half_width=2.0, axes=2),
    tables.FourierFeatures(kernels.GaussianKernel(dim=8, bandwidth=1.0), 24, 5, groups=3),
    tables.FourierFeatures(kernels.GaussianKernel(dim=64, bandwidth=1.0), 64, 6, structured=True),
    tables.FourierFeatures(kernels.GaussianKernel(dim=64, bandwidth=1.0), 128, 7, groups=2, structured=True),
)


_PLACES = 33


def box_pool(basis: tables.BoxBasis, rng: np.random.Generator) -> Pool:
    """Corners, the centre, a fine walk along the diagonal and the sides of the box, and records far outside
    of it.
    """
    low, high = np.array(basis.bounds.low), np.array(basis.bounds.high)
    walk = np.linspace(0.0, 1.0, _PLACES)[:, np.newaxis]
    diagonal = low + walk * (high - low)
    side = diagonal.copy()
    side[:, 1:] = low[1:]
    inside = rng.uniform(low, high, (24, basis.dim))
    return [*diagonal, *side, *inside, *dense_rows(basis.dim, 1.0, rng)]


register_basis(
    box_pool,
    tables.FourierSeries(
        kernel=kernels.GaussianKernel(1, 1.0), bounds=_box([(0, 8)]), frequencies=2, padding=1.0
    ),
    tables.FourierSeries(
        kernel=kernels.GaussianKernel(2, 3.0),
        bounds=_box([(-4, 4)] * 2),
        frequencies=1,
        padding=0.5,
        taper=2.0 / 3.0,
    ),
)


def _monomials_pool(basis: tables.Monomials, rng: np.random.Generator) -> Pool:
    """Axes, diagonals and their opposites, the pair whose products differ most, and records far outside of
    the ball, each several times so that they meet.
    """
    assert isinstance(basis.kernel, kernels.InnerProductKernel)
    dim, radius = basis.kernel.dim, basis.kernel.radius
    level = np.ones(dim)
    mixed = np.where(np.arange(dim) % 2, -1.0, 1.0)
    rows = [np.eye(dim)[0], np.eye(dim)[-1], level, -level, mixed, -mixed, *opposed_directions(dim)]
    rows = [radius * row / np.linalg.norm(row) for row in rows]
    rows += [1e6 * row for row in rows]
    return [*np.tile(np.array(rows, np.float32), (4, 1)), *dense_rows(dim, radius, rng)]


def opposed_directions(dim: int) -> list[Floats]:
    """Two orthogonal directions u, v for which Σ|u_i·u_j − v_i·v_j| is largest.

    They are the eigenvectors of the sign matrix [[1, 1], [1, −1]], each of its entries a block.
    """
    angle = np.pi / 8.0
    half = (np.arange(dim) >= dim // 2).astype(int)
    return [np.array([np.cos(angle), np.sin(angle)])[half], np.array([-np.sin(angle), np.cos(angle)])[half]]


register_basis(
    _monomials_pool,
    tables.Monomials(kernels.DotProductKernel(dim=1)),
    tables.Monomials(kernels.DotProductKernel(dim=16, radius=3.0)),
    tables.Monomials(kernels.DotProductKernel(dim=33), bits=16),
    tables.Monomials(kernels.PolynomialKernel(dim=2)),
    tables.Monomials(kernels.PolynomialKernel(dim=16, radius=0.1)),
    tables.Monomials(kernels.PolynomialKernel(dim=9), bits=10),
)


def _moments_pool(basis: tables.Moments, rng: np.random.Generator) -> Pool:
    box = basis.ball.bounds
    low, high = np.array(box.low), np.array(box.high)
    corners = np.where(rng.random((40, basis.ball.features)) < 0.5, low, high)
    mirrored = corners.copy()
    mirrored[:, -1] = low[-1] + high[-1] - corners[:, -1]
    inside = rng.uniform(low, high, (12, basis.ball.features))
    rows = [low, high, (low + high) / 2, *corners, *mirrored, *inside, *inside[:3]]
    return [*rows, *(scale * (high - low) * rng.normal(size=len(low)) for scale in (10.0, 1e6, 1e-6))]


_ENDS = [(-1.0 - i, 2.0 + i) for i in range(17)]
register_basis(
    _moments_pool,
    *(tables.Moments(UnitBall(_box(_ENDS[:columns]))) for columns in (1, 4, 17)),
    tables.Moments(UnitBall(_box(_ENDS[:4]), radius=1.9), bits=8),
)


def _class_moments_pool(basis: tables.ClassMoments, rng: np.random.Generator) -> Pool:
    """Axes, diagonals, their opposites and the pairs whose products differ most; records far outside of the
    ball and at its centre.
    """
    dim = basis.dim
    level = np.ones(dim)
    vectors = [np.eye(dim)[0], level, -level, _worst_partner(basis), *opposed_directions(dim)]
    vectors += [*rng.normal(size=(3, dim))]
    rows = [basis.radius * each / np.linalg.norm(each) for each in vectors]
    rows += [np.zeros(dim), 1e30 * level, 1e-30 * level]
    records = [np.concatenate(([code], each)) for code in range(basis.classes) for each in rows]
    return [*np.tile(np.array(records, np.float32), (3, 1))]


def _worst_partner(basis: tables.ClassMoments) -> Floats:
    """The direction that replaces the first axis, so that the sums and the moments of one class move the
    most.
    """
    own, shared = basis.mean_weight - basis.shared_weight, basis.shared_weight
    mean, second = own**2 + (basis.classes - 1) * shared**2, (tables.SQUARE_WEIGHT * basis.length) ** 2
    cosine = -min(1.0, mean / (2 * second)) if basis.moments else -1.0
    found = np.zeros(basis.dim)
    found[0], found[-1] = cosine, math.sqrt(1.0 - cosine**2)
    return found


def _class_moments(
    classes: int, dim: int, moments: Fraction, radius: float = 1.0, **options: Any
) -> tables.ClassMoments:
    return tables.ClassMoments.of_shares(
        classes, dim, radius, moment_share=moments, count_share=Fraction(1, 20), bits=10, **options
    )


register_basis(
    _class_moments_pool,
    _class_moments(2, 6, Fraction(0), radius=3.0),
    _class_moments(3, 8, Fraction(1, 5)),
    _class_moments(2, 4, Fraction(3, 5)),
    _class_moments(2, 5, Fraction(1, 2), by_class=True),
    _class_moments(3, 6, Fraction(0), total=0.5),
    _class_moments(2, 4, Fraction(3, 5), total=0.7),
)


def _values(column: DeclaredColumn, rng: np.random.Generator) -> list[object]:
    """Values of a column: ends, edges and their neighbours, far outside, missing and undeclared ones."""
    if isinstance(column, NumberColumn):
        edges = column.edges
        found = [*edges, *np.nextafter(edges, np.inf), *np.nextafter(edges, -np.inf)]
        found += [-0.0, 1e300, -1e300, 5e-324, *rng.uniform(column.low, column.high, 8).tolist()]
        return [float(each) for each in found] + ([None] if column.fill is not None else [])
    if isinstance(column, CategoryColumn):
        undeclared = ["undeclared"] if isinstance(column.values[0], str) else [-77.0]
        listed: list[object] = list(column.values)
        listed += undeclared if column.unknown == "other" else []
        return listed + ([None] if column.missing == "category" else [])
    if isinstance(column, DateColumn):
        days = np.datetime64(column.low) + rng.integers(-400, 4000, 12)
        listed = [column.low, column.high, "0001-01-01", "2262-01-01T23:59:59", *days.astype(str).tolist()]
        return listed + ([None] if column.missing == "category" else [])
    assert isinstance(column, FlagColumn)
    return [False, True, *([None] if column.missing == "category" else [])]


def _marginals_pool(basis: tables.Marginals, rng: np.random.Generator) -> Pool:
    """Opposite records, which share no label and so meet the bound under replace; then random ones."""
    values = [_values(each, rng) for each in basis.encodings]
    ends = [[each[0] for each in values], [each[1] for each in values], [each[-1] for each in values]]
    mixed = [[each[int(rng.integers(len(each)))] for each in values] for _ in range(40)]
    return [*ends, *ends, *mixed]


_AGE = NumberColumn(0, 120, fill=0, bins=6)
_MONEY = NumberColumn(0, 1e5, bins=[0, 1, 1000, 1e5])
_JOB = CategoryColumn(["care", "trade", "law"], unknown="other")
_CODE = CategoryColumn([1, 2.5, 7], unknown="other", missing="refuse")
_HIRED = DateColumn("2015-01-01", "2024-12-31", bins=5)

register_basis(
    _marginals_pool,
    tables.Marginals.of([_AGE], [(0,)]),
    tables.Marginals.of([_AGE, _JOB], [(0,), (1,), (0, 1)]),
    tables.Marginals.of([_JOB, FlagColumn(missing="refuse")], [(0,), (1,), (0, 1)]),
    tables.Marginals.of(
        [_AGE, _JOB, _MONEY, FlagColumn(), _CODE, _HIRED],
        [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 4), (2, 3), (0, 5), (0, 2, 4), (0, 1, 2, 3, 4, 5)],
        ["age", "job", "money", "smoker", "code", "hired"],
    ),
)


# Runs an audit with noise from the source, times the given factor: 1 for the audit, less for a mutant.
Run = Callable[[NoiseSource, float], AuditRow]


@dataclass(frozen=True, slots=True)
class NoiseCase:
    """One worst pair of a sampler. ``sampler`` is the name of the function in `hushsum.privacy.noise`."""

    sampler: str
    pair: str
    run: Run
    thorough: bool = False


def _added(
    mechanism: str,
    parameter: float | Fraction,
    shift: int = 1,
    *,
    cells: int = 1,
    count: float | None = None,
    sites: int = 1,
    thorough: bool = False,
) -> NoiseCase:
    """Noise on cells, and perhaps on the count, that move by ``shift``.

    For several sites it is the sum of the honest sites' shares in a secure aggregation, without the shares of
    colluding sites.

    All but Laplace's distribution are audited against one discrete Gaussian: the same; the sum of smaller
    ones; Skellam noise, which at the variance below is a Gaussian but for a few hundredths of a per cent; and
    many coins, whose sum is a Gaussian of a quarter of their number but for a thousandth.
    """
    sampler = "centred_binomial" if mechanism == BINOMIAL else mechanism.replace(" ", "_")
    name = mechanism
    pair = f"{cells} cells moved by {shift}" if cells > 1 else f"one cell moved by {shift}"
    pair += "" if count is None else " and the count"
    if sites > 1:
        sampler += "_share" if mechanism == LAPLACE else ""
        name, pair = f"{sites} shares of {mechanism}", f"{pair}, {sites} honest sites"
    what = f"{name}, {pair}"

    def run(source: NoiseSource, factor: float) -> AuditRow:
        def draw(whole: float | Fraction) -> Draw:
            # The scale of Laplace's distribution shrinks with the noise, a variance with its square.
            less = exact("parameter", whole) * exact("factor", factor) ** (1 if mechanism == LAPLACE else 2)
            if mechanism == LAPLACE:
                noise = IntegerNoise(LAPLACE, less, parts=sites)
            elif mechanism == BINOMIAL:
                noise = IntegerNoise(BINOMIAL, Fraction(2 * round(less / 2)))
            else:
                noise = IntegerNoise(mechanism, less / sites)
            return lambda size: np.asarray(noise.draw(size * sites, source).reshape(sites, size).sum(axis=0))

        if mechanism == LAPLACE:
            return audit_laplace(draw(parameter), shift / parameter, shift=shift, what=what)
        variance = parameter / 4 if mechanism == BINOMIAL else parameter
        also = None if count is None else (draw(count), count)
        return audit_gaussian(draw(parameter), variance, cells=cells, shift=shift, count=also, what=what)

    return NoiseCase(sampler, pair, run, thorough)


def _gamma(scale: int, name: str, draw_one: Callable[[Fraction, NoiseSource], float]) -> NoiseCase:
    """One cell, where the Gamma-radius distribution is Laplace's, rounded: its worst pair, since in more
    cells losses are smaller but for noise along the move. A thousandth of the scale is lost to rounding, far
    less than the test sees.
    """
    pair = f"one cell moved by {scale}"

    def run(source: NoiseSource, factor: float) -> AuditRow:
        smaller = scale * exact("factor", factor)

        def draw(size: int) -> Integers:
            return np.rint([draw_one(smaller, source) for _ in range(size)]).astype(np.int64)

        return audit_laplace(draw, 1, shift=scale, what=f"{GAMMA}, {pair}")

    return NoiseCase(name, pair, run)


def _choice(
    sampler: str,
    mechanism: str,
    words: str,
    inputs: tuple[Any, Any],
    draw: Callable[[Any, Fraction, int, NoiseSource], Sequence[int]],
    probabilities: Callable[[Any, float], list[float]],
) -> NoiseCase:
    """Two inputs of a mechanism that is run at ε = 1 and has a few outcomes.

    ``draw(input, epsilon, size, source)`` gives outcomes, ``probabilities(input, epsilon)`` their
    distribution.
    """
    pair = f"{words} {inputs[0]} and {inputs[1]}"

    def run(source: NoiseSource, factor: float) -> AuditRow:
        epsilon = 1 / exact("factor", factor)
        left, right = (
            lambda size, given=given: np.array(draw(given, epsilon, size, source), np.int64)
            for given in inputs
        )

        def distributions(at: float) -> tuple[list[float], list[float]]:
            return probabilities(inputs[0], at), probabilities(inputs[1], at)

        seed = source.stream().more_bits(0)(0)
        return audit_choice(left, right, 1.0, distributions, what=f"{mechanism}, {pair}", seed=seed)

    return NoiseCase(sampler, pair, run)


def _chosen(
    choose: Callable[[Sequence[int], Fraction, NoiseSource], int],
    probabilities: Callable[[Sequence[int], float], list[float]],
    *scores: list[int],
) -> NoiseCase:
    """A choice by scores of sensitivity 1, so that the rate is ε/2."""
    return _choice(
        choose.__name__,
        choose.__name__.replace("_", " "),
        "scores",
        (scores[0], scores[1]),
        lambda given, epsilon, size, source: [choose(given, epsilon / 2, source) for _ in range(size)],
        lambda given, epsilon: probabilities(given, epsilon / 2),
    )


def _coin(rank: int, epsilon: float) -> list[float]:
    """The probabilities of a coin whose log-odds fall by ε with each rank."""
    falls = 1.0 / (1.0 + math.exp(epsilon * rank))
    return [1.0 - falls, falls]


_CASES = (
    _added(LAPLACE, 1),
    _added(LAPLACE, 5, 5),
    _added(LAPLACE, 10),
    _added(LAPLACE, Fraction(1, 3)),
    _added(LAPLACE, 100, thorough=True),
    _added(LAPLACE, 1000, 1000, thorough=True),
    _added(LAPLACE, Fraction(1, 8), thorough=True),
    _gamma(1000, "gamma_radius", lambda scale, source: gamma_radius(1, scale, source)[0]),
    _gamma(1000, "gamma_vector", lambda scale, source: ReleaseNoise(source).gamma_vector(1, float(scale))[0]),
    _added(LAPLACE, 100, 100, sites=5),
    _added(LAPLACE, 10, 10, sites=2),
    _added(GAUSSIAN, 100.0, 10, sites=5),
    _added(BINOMIAL, 40_000, 100),
    _added(SKELLAM, 400.0, 20, sites=5),
    _added(GAUSSIAN, 1.0),
    _added(GAUSSIAN, 16.0, cells=16),
    _added(GAUSSIAN, 16.0, cells=16, count=4.0),
    _added(GAUSSIAN, 0.5, cells=4, thorough=True),
    _added(GAUSSIAN, 1e4, cells=100, count=500.0, thorough=True),
    _added(GAUSSIAN, 9.0, 3, cells=9, count=9.0, thorough=True),
    _chosen(permute_and_flip, permute_and_flip_distribution, [-2, 0], [-1, -1]),
    _chosen(exponential_choice, exponential_distribution, [1, 0, 0, 0], [0, 1, 1, 1]),
    _choice(
        "log_odds_coins",
        "log-odds coin",
        "ranks",
        (1, 2),
        lambda rank, epsilon, size, source: log_odds_coins([Fraction(epsilon * rank)] * size, source),
        _coin,
    ),
)


def noise_cases(*, thorough: bool = True) -> list[NoiseCase]:
    """The worst pairs of every sampler, without the long ones unless ``thorough``."""
    return [case for case in _CASES if thorough or not case.thorough]


PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
# For counts, whose lattice is as coarse as their sensitivity: at this claim two neighbours are up to 3 %
# further apart than two normal distributions, far within the slack of the bounds, and at a larger ε by more.
_SMALLER = Promise.of(epsilon=4.0, delta=1e-6)

_RECORDS = 24
# C for which no margin is reached, ‖w‖√κ ≤ Cκ < 1: every record pulls with all of C/n, and Δ is attained.
_ONE_CLASS_MARGIN = 0.3


def _histogram(relation: Relation, promise: Promise = _SMALLER) -> Separated:
    box = Bounds((0.0,), (1.0,))
    basis = tables.Bins((4,), box)
    crowd = [[0.1]] * _RECORDS
    more = [*crowd, [0.9]] if relation is Relation.ADD_REMOVE else [*crowd[1:], [0.9]]
    tallies = [
        Tally(basis, kernels.GaussianKernel(dim=1, bandwidth=0.25)).add(records) for records in (crowd, more)
    ]
    assert promise.epsilon is not None
    terms: dict[str, Any] = {
        "epsilon": float(promise.epsilon),
        "delta": float(promise.delta),
        "relation": relation,
        # As of the model, whose claim is stated before its table is known.
        "mechanism": stated_mechanism(promise),
    }

    def released(side: int, seed: int | None) -> CoefficientFunction:
        function = tallies[side].release(**terms, insecure_noise_seed=seed)
        assert isinstance(function, CoefficientFunction)
        return function

    exact = [tally._table[0].astype(np.float64) for tally in tallies]
    # A record that is replaced moves two cells, and the difference of both by two.
    moved = 1 if relation is Relation.ADD_REMOVE else 2
    chances = lattice_chances(float(released(0, None).noise.parameter), cells=moved, move=moved)
    return _along_difference(
        exact, lambda *of: np.asarray(released(*of).table[0], np.float64), promise, chances
    )


def _posterior(promise: Promise = PROMISE) -> Separated:
    """Neighbours that differ in one target: it is at one end of its range or at the other, at the input with
    the largest weight.
    """
    matrix = smoother(_directions(_RECORDS, 12), 0.5)
    largest = 1 << TARGET_BITS
    heaviest = int((matrix**2).sum(axis=0).argmax())
    targets = [np.zeros(_RECORDS, np.int64) for _ in range(2)]
    targets[0][heaviest], targets[1][heaviest] = -largest, largest

    def release(side: int, seed: int | None) -> Floats:
        noisy = perturbed_posterior(matrix, targets[side], promise, insecure_noise_seed=seed)
        return noisy.values.reshape(-1)

    exact = (matrix @ targets[0] / largest, matrix @ targets[1] / largest)
    return _along_difference(exact, release, promise, normal_chances(0.99 * allowed_distance(promise)))


def _machines(classes: int, promise: Promise = PROMISE) -> Separated:
    """One label goes over to another class; the last weight of each machine is its intercept."""
    rows = _directions(_RECORDS, 8)
    codes = [np.arange(_RECORDS) % classes for _ in range(2)]
    codes[1][0] = 1
    found = [fit_machines(rows, each, classes, _ONE_CLASS_MARGIN) for each in codes]

    def release(side: int, seed: int | None) -> Floats:
        return perturbed_machines(found[side], promise, insecure_noise_seed=seed).values.reshape(-1)

    exact = found[0].weights.reshape(-1), found[1].weights.reshape(-1)
    intercepts = np.zeros(found[0].weights.shape)
    intercepts[:, -1] = (found[1].weights - found[0].weights)[:, -1]
    # Of K machines a label moves two.
    reach = (1.0 if classes == 2 else (2.0 / classes) ** 0.5) / (1.0 + GAP_SHARE)
    chances = normal_chances(0.99 * reach * allowed_distance(promise))
    return _along_difference(exact, release, promise, chances, also=intercepts.reshape(1, -1))


def _directions(number: int, dim: int) -> Floats:
    """Rows of length 1."""
    rows = np.random.default_rng(5).normal(size=(number, dim))
    lengths: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths


def _along_difference(
    exact: Sequence[Floats],
    release: Callable[[int, int | None], Floats],
    promise: Promise,
    chances: Chances,
    *,
    also: Floats | None = None,
) -> Separated:
    """Noise is equal in all coordinates, so the difference itself is the best direction."""
    difference = (exact[1] - exact[0])[np.newaxis]
    directions = difference if also is None else np.concatenate((difference, also))
    return Separated((exact[0], exact[1]), release, directions, allowed_distance(promise), chances)


register_mechanism(
    MechanismCase("PrivateHistogram", "one record replaced", partial(_histogram, Relation.REPLACE), _SMALLER),
    MechanismCase(
        "PrivateHistogram", "one record", partial(_histogram, Relation.ADD_REMOVE), _SMALLER, thorough=True
    ),
    MechanismCase("PrivateGaussianProcessRegressor", "one target", _posterior, PROMISE),
    MechanismCase("PrivateKernelSVC", "one label of two classes", partial(_machines, 2), PROMISE),
    MechanismCase("PrivateKernelSVC", "one label of three classes", partial(_machines, 3), PROMISE),
)
