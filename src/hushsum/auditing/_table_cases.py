"""Adversarial records and examples of every basis."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.auditing._registry import audited_kernels, kernel_cases, register_basis, register_kernel
from hushsum.auditing._sensitivity import Pool, code_records, dense_records, dense_rows, set_records
from hushsum.kernels import (
    AngularKernel,
    AsymmetricAngularKernel,
    CombinationKernel,
    DotProductKernel,
    EuclideanKernel,
    GaussianKernel,
    HammingKernel,
    HashableCombination,
    InnerProductKernel,
    JaccardKernel,
    Kernel,
    LaplacianKernel,
    ManhattanKernel,
    MaternKernel,
    PolynomialKernel,
    ProductKernel,
    ScaledKernel,
    on_columns,
    scaled_by,
)
from hushsum.records import Bounds, CategoryColumn, DeclaredColumn, FlagColumn, Graph, NumberColumn, UnitBall
from hushsum.tables import (
    SQUARE_WEIGHT,
    AdjacencyRows,
    Basis,
    Bins,
    BoxBasis,
    ClassMoments,
    DividedRows,
    FourierFeatures,
    FourierSeries,
    GridWeights,
    HashRows,
    IncrementRows,
    Marginals,
    Moments,
    Monomials,
)


def _box(ends: list[tuple[float, float]]) -> Bounds:
    return Bounds.declared(ends, len(ends), "an audit")


register_kernel(
    "euclidean",
    dense_records,
    EuclideanKernel(dim=3, bandwidth=1.0),
    EuclideanKernel(dim=33, bandwidth=2.0, power=3),
    EuclideanKernel(dim=100, bandwidth=1.0, projection="structured"),
)
register_kernel(
    "manhattan", dense_records, ManhattanKernel(dim=3, bandwidth=2.0), ManhattanKernel(2, 4.0, power=2)
)
register_kernel(
    "angular",
    dense_records,
    AngularKernel(dim=4, bits=6),
    AngularKernel(dim=4, bits=4, power=10),
    AngularKernel(dim=100, bits=6, projection="structured"),
)
register_kernel(
    "asymmetric-angular",
    dense_records,
    AsymmetricAngularKernel(dim=4, bits=6),
    AsymmetricAngularKernel(dim=3, bits=4, power=10, radius=2.5),
)
register_kernel("jaccard", set_records, JaccardKernel(), JaccardKernel(power=2))
register_kernel("hamming", code_records, HammingKernel(dim=6), HammingKernel(dim=6, power=2))


def _product_records(kernel: ProductKernel, rng: np.random.Generator) -> Pool:
    """Each factor's columns as an adversary of that kernel would choose them, in pairs that recur: records
    that differ in the columns of one factor alone, and in all.
    """
    pools = [kernel_cases(each.kernel.name).adversary(each.kernel, rng) for each in kernel.factors]
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


def _combination_records(kernel: CombinationKernel, rng: np.random.Generator) -> Pool:
    """The records that attack the first component; the others have the same columns."""
    first = kernel.components[0].kernel
    return kernel_cases(first.name).adversary(first, rng)


def _scaled_records(kernel: ScaledKernel, rng: np.random.Generator) -> Pool:
    """The records that attack the kernel, in the units of the columns."""
    units, most = np.array(kernel.units), float(np.finfo(np.float32).max)
    inner = kernel_cases(kernel.kernel.name).adversary(kernel.kernel, rng)
    scaled = (np.clip(np.asarray(each, np.float64) * units, -most, most) for each in inner)
    # As they come, and in the units of the kernel: some of these exceed float32 where they are divided.
    return [*(each.astype(np.float32) for each in scaled), *inner[:20]]


_MIXED = (
    on_columns(EuclideanKernel(dim=2, bandwidth=1.0), [0, 2], of=4)
    * on_columns(HammingKernel(dim=1), 1, of=4)
    * on_columns(JaccardKernel(), 3, of=4)
)
register_kernel(
    "product",
    _product_records,
    _MIXED,
    EuclideanKernel(dim=3, bandwidth=1.0) * ManhattanKernel(dim=3, bandwidth=4.0),
    on_columns(AngularKernel(dim=3, bits=3), [0, 1, 2], of=4) * on_columns(EuclideanKernel(1, 1.0), 3, of=4),
)
register_kernel(
    "scaled",
    _scaled_records,
    scaled_by(EuclideanKernel(dim=3, bandwidth=0.1), (120.0, 3e5, 0.01)),
    scaled_by(ManhattanKernel(dim=2, bandwidth=0.5, power=2), (7.0, 1e-3)),
)
register_kernel(
    "combination",
    _combination_records,
    1.5 * EuclideanKernel(dim=3, bandwidth=1.0) - 0.5 * EuclideanKernel(dim=3, bandwidth=4.0, power=2),
    0.25 * _MIXED + 0.75 * on_columns(HammingKernel(dim=1), 1, of=4),
    JaccardKernel() - 3.0 * JaccardKernel(power=2),
)


def _counted(rows: type[Basis], kernel: Kernel) -> Basis | None:
    """The table of a kernel; None for a kernel that tables of the other class count."""
    # 70 rows and 53 cells: full and partial panels of rows, and few enough cells that a stray count would
    # fall on a used one.
    kind = DividedRows if isinstance(kernel, HashableCombination) else HashRows
    return kind(kernel, rows=70, width=53, seed=11) if kind is rows else None


def _hash_rows_pool(basis: HashRows | DividedRows, rng: np.random.Generator) -> Pool:
    return kernel_cases(basis.kernel.name).adversary(basis.kernel, rng)


def _increments_pool(basis: IncrementRows, rng: np.random.Generator) -> Pool:
    """A record and its opposite, many times so that one replaces the other: then increments of opposite signs
    change places. The zero vector, which is its own opposite. And those that attack any kernel.
    """
    worst = rng.normal(size=basis.kernel.dim).astype(np.float32) * 100.0
    return [*[worst, -worst, np.zeros_like(worst)] * 40, *dense_records(basis.kernel, rng)]


_HASHED = [kernel for name in audited_kernels() for kernel in kernel_cases(name).examples]
for rows in (HashRows, DividedRows):
    made = (_counted(rows, kernel) for kernel in _HASHED)
    register_basis(
        _hash_rows_pool, *(each for each in made if each is not None), of_kernel=partial(_counted, rows)
    )
register_basis(
    _increments_pool,
    IncrementRows(AsymmetricAngularKernel(dim=3, bits=4), 40, 16, 11, (1, 1)),
    IncrementRows(AsymmetricAngularKernel(dim=3, bits=4), 40, 16, 12, (1, -1)),
    IncrementRows(EuclideanKernel(dim=2, bandwidth=1.0), 40, 53, 13, (3, -1)),
)


def _adjacency_pool(basis: AdjacencyRows, rng: np.random.Generator) -> Pool:
    """Any sets: the reader of edges makes rows of 64-bit ids."""
    return set_records(basis.kernel, rng)


_GRAPHS = [
    Graph(directed=directed, **kind)
    for directed in (False, True)
    for kind in ({}, {"nodes": 40}, {"rows_listed": True})
]
register_basis(
    _adjacency_pool,
    *(AdjacencyRows(JaccardKernel(), 70, 7 if each.nodes else 53, 11, graph=each) for each in _GRAPHS),
)


def _bins_pool(basis: Bins, rng: np.random.Generator) -> Pool:
    """Those that attack any kernel; corners of the box; edges of cells, where rounding decides."""
    low, high, width = np.array(basis.bounds.low), np.array(basis.bounds.high), basis.grid.width
    edges = low + rng.integers(0, np.array(basis.bins) + 1, (24, len(low))) * width
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *edges, *np.nextafter(edges, high)]


register_basis(
    _bins_pool,
    Bins((40,), Bounds((-3.0,), (3.0,))),
    Bins((7, 9), Bounds((-3.0, 0.0), (3.0, 0.3))),
    Bins((3, 1, 5), Bounds((-3.0,) * 3, (3.0,) * 3)),
)


def _grid_pool(basis: GridWeights, rng: np.random.Generator) -> Pool:
    """Those that attack any kernel; the corners of the box; and middles and ends of cells, where weights of
    even and of odd degree are most uneven.
    """
    low, high, spacing = (np.array(side) for side in (basis.bounds.low, basis.bounds.high, basis.spacing))
    middles = low + (rng.integers(0, np.array(basis.cells), (24, len(low))) + 0.5) * spacing
    edges = low + rng.integers(0, np.array(basis.cells) + 1, (24, len(low))) * spacing
    return [*dense_rows(basis.bounds.dim, 1.0, rng), low, high, *middles, *edges]


_GRIDS: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = [
    ((40,), [(2,), (5,)]),
    ((12,), [(0,)]),
    ((8, 9), [(3, 3), (0, 4), (0, 0), (2, 5)]),
    ((6, 7, 8), [(4, 4, 4)]),
    ((3,) * 4, [(3,) * 4]),
]
"""Cells, and the degrees to count them with."""

register_basis(
    _grid_pool,
    *(
        GridWeights(cells, Bounds((-3.0,) * len(cells), (3.0,) * len(cells)), degrees)
        for cells, listed in _GRIDS
        for degrees in listed
    ),
)


_ATTEMPTS = 1 << 8
_PAIRS = 1 << 13


def _features_pool(basis: FourierFeatures, rng: np.random.Generator) -> Pool:
    """Two records that are far apart, many times each so that they meet, and those that attack any kernel.

    A phase of an odd eighth of a turn has the largest |cos| + |sin|, and half a turn more the opposite signs.
    With as many columns as features, or more, a record can have such phases on all of them. In a box, the two
    are the furthest of many random pairs.
    """
    solved = _opposite_records(basis, rng) if basis.bounds is None else _far_records(basis, basis.bounds, rng)
    return [*np.tile(solved, (20, 1)), *dense_records(basis.kernel, rng)]


def _opposite_records(basis: FourierFeatures, rng: np.random.Generator) -> NDArray[np.float32]:
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


def _far_records(basis: FourierFeatures, box: Bounds, rng: np.random.Generator) -> NDArray[np.float64]:
    """The two records of a box, shape (2, columns), whose integers differ most among random pairs."""
    inside = rng.uniform(-1.0, 1.0, (2 * _PAIRS, box.dim))
    inside[: _PAIRS // 4] = np.sign(inside[: _PAIRS // 4]) * np.sqrt(rng.random((_PAIRS // 4, 1)))
    # A quarter of the pairs are opposite: their difference is as long as the box allows.
    inside[_PAIRS : _PAIRS + _PAIRS // 4] = -inside[: _PAIRS // 4]
    records = box.centre + inside * box.half_width
    integers = basis.map.integers(basis.prepare(records).arrays[0]).astype(np.int64)
    moved = np.abs(integers[:_PAIRS] - integers[_PAIRS:]).sum(axis=(1, 2))
    furthest = int(moved.argmax())
    return records[[furthest, _PAIRS + furthest]]


_MATERN = MaternKernel(dim=20, bandwidth=3.0, smoothness=0.5)


def _features_example(dim: int, features: int, seed: int, half_width: float | None = None) -> FourierFeatures:
    box = None if half_width is None else Bounds((-half_width,) * dim, (half_width,) * dim)
    return FourierFeatures(GaussianKernel(dim=dim, bandwidth=1.0), features, seed, bounds=box)


register_basis(
    _features_pool,
    _features_example(1, 1, 1),
    _features_example(40, 37, 2),
    FourierFeatures(LaplacianKernel(dim=20, bandwidth=4.0), 17, 3),
    FourierFeatures(MaternKernel(dim=20, bandwidth=4.0), 17, 8),
    FourierFeatures(GaussianKernel(dim=20, bandwidth=4.0) * _MATERN, 17, 9),
    FourierFeatures(0.5 * GaussianKernel(dim=20, bandwidth=4.0) + 0.5 * _MATERN, 17, 10),
    FourierFeatures(scaled_by(_MATERN, [0.5 + column for column in range(20)]), 17, 11),
    _features_example(2, 2, 4, half_width=50.0),
    _features_example(1, 3, 1, half_width=2.0),
    _features_example(2, 6, 3, half_width=1.5),
    FourierFeatures(GaussianKernel(dim=8, bandwidth=1.0), 24, 5, groups=3),
    FourierFeatures(GaussianKernel(dim=64, bandwidth=1.0), 64, 6, structured=True),
    FourierFeatures(GaussianKernel(dim=64, bandwidth=1.0), 128, 7, groups=2, structured=True),
)


_PLACES = 33


def box_pool(basis: BoxBasis, rng: np.random.Generator) -> Pool:
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
    FourierSeries(kernel=GaussianKernel(1, 1.0), bounds=_box([(0, 8)]), frequencies=2, padding=1.0),
    FourierSeries(
        kernel=GaussianKernel(2, 3.0), bounds=_box([(-4, 4)] * 2), frequencies=1, padding=0.5, taper=2.0 / 3.0
    ),
)


def _monomials_pool(basis: Monomials, rng: np.random.Generator) -> Pool:
    """Axes, diagonals and their opposites, the pair whose products differ most, and records far outside of
    the ball, each several times so that they meet.
    """
    assert isinstance(basis.kernel, InnerProductKernel)
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
    return [
        np.array([np.cos(angle), np.sin(angle)])[half],
        np.array([-np.sin(angle), np.cos(angle)])[half],
    ]


register_basis(
    _monomials_pool,
    Monomials(DotProductKernel(dim=1)),
    Monomials(DotProductKernel(dim=16, radius=3.0)),
    Monomials(DotProductKernel(dim=33), bits=16),
    Monomials(PolynomialKernel(dim=2)),
    Monomials(PolynomialKernel(dim=16, radius=0.1)),
    Monomials(PolynomialKernel(dim=9), bits=10),
)


def _moments_pool(basis: Moments, rng: np.random.Generator) -> Pool:
    box = basis.ball.bounds
    low, high = np.array(box.low), np.array(box.high)
    corners = np.where(rng.random((40, basis.ball.columns)) < 0.5, low, high)
    mirrored = corners.copy()
    mirrored[:, -1] = low[-1] + high[-1] - corners[:, -1]
    inside = rng.uniform(low, high, (12, basis.ball.columns))
    rows = [low, high, (low + high) / 2, *corners, *mirrored, *inside, *inside[:3]]
    return [*rows, *(scale * (high - low) * rng.normal(size=len(low)) for scale in (10.0, 1e6, 1e-6))]


_ENDS = [(-1.0 - i, 2.0 + i) for i in range(17)]
register_basis(
    _moments_pool,
    *(Moments(UnitBall(_box(_ENDS[:columns]))) for columns in (1, 4, 17)),
    Moments(UnitBall(_box(_ENDS[:4]), radius=1.9), bits=8),
)


def _class_moments_pool(basis: ClassMoments, rng: np.random.Generator) -> Pool:
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


def _worst_partner(basis: ClassMoments) -> Floats:
    """The direction that the first axis is replaced by, so that the sums and the moments of one class move
    the most.
    """
    own, shared = basis.mean_weight - basis.shared_weight, basis.shared_weight
    mean, second = own**2 + (basis.classes - 1) * shared**2, (SQUARE_WEIGHT * basis.length) ** 2
    cosine = -min(1.0, mean / (2 * second)) if basis.moments else -1.0
    found = np.zeros(basis.dim)
    found[0], found[-1] = cosine, math.sqrt(1.0 - cosine**2)
    return found


def _class_moments(
    classes: int, dim: int, moments: Fraction, radius: float = 1.0, **options: Any
) -> ClassMoments:
    return ClassMoments.of_shares(
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
    assert isinstance(column, FlagColumn)
    return [False, True, *([None] if column.missing == "category" else [])]


def _marginals_pool(basis: Marginals, rng: np.random.Generator) -> Pool:
    """Opposite records, which share no label and so meet the bound under replace; then random ones."""
    values = [_values(each, rng) for each in basis.encodings]
    ends = [[each[0] for each in values], [each[1] for each in values], [each[-1] for each in values]]
    mixed = [[each[int(rng.integers(len(each)))] for each in values] for _ in range(40)]
    return [*ends, *ends, *mixed]


_AGE = NumberColumn(0, 120, fill=0, bins=6)
_MONEY = NumberColumn(0, 1e5, bins=[0, 1, 1000, 1e5])
_JOB = CategoryColumn(["care", "trade", "law"], unknown="other")
_CODE = CategoryColumn([1, 2.5, 7], unknown="other", missing="refuse")

register_basis(
    _marginals_pool,
    Marginals.of([_AGE], [(0,)]),
    Marginals.of([_AGE, _JOB], [(0,), (1,), (0, 1)]),
    Marginals.of([_JOB, FlagColumn(missing="refuse")], [(0,), (1,), (0, 1)]),
    Marginals.of(
        [_AGE, _JOB, _MONEY, FlagColumn(), _CODE],
        [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 4), (2, 3), (0, 2, 4), (0, 1, 2, 3, 4)],
        ["age", "job", "money", "smoker", "code"],
    ),
)
