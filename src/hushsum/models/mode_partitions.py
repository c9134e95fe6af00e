"""Modes from the partitions of the hash rows: by intersecting them, or by linear programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.hash_rows import HashRows
from hushsum.kernels.base import Kernel
from hushsum.kernels.hash_partitions import HashPartitions
from hushsum.models.mode_search import Function, spread_points
from hushsum.releases.noisy_table import NoisyTable

_CLOUD: Final = 256
_STEPS: Final = 12
_ROWS_OF_A_PROGRAM: Final = 200
_REWEIGHTINGS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """The slabs of the hash rows in a declared box, and what is counted where.

    ``f`` answers the released function; ``counts`` the noisy counts of each row's cell, shape (n, rows).
    ``origin`` is subtracted from a point before it is hashed.
    """

    slabs: HashPartitions
    f: Function
    counts: Function
    origin: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, function: NoisyTable, low: Floats, high: Floats) -> Partitions:
        """The partitions behind a released table.

        Raises
        ------
        UsageError
            if its hash rows are not slabs.
        """
        basis = function.basis
        assert isinstance(basis, HashRows)
        rows = np.arange(function.rows)

        def counts(points: Floats) -> Floats:
            return function.table[rows, basis.cells(basis.prepare_queries(points))].astype(np.float64)

        slabs = HashPartitions.of(function.kernel, rows=function.rows, seed=basis.seed)
        origin = np.zeros(len(low)) if basis.bounds is None else basis.bounds.centre
        return cls(slabs, function, counts, origin, low, high)

    @staticmethod
    def check(kernel: Kernel) -> None:
        """Raise UsageError for a kernel whose hash rows are not slabs."""
        HashPartitions.of(kernel, rows=1, seed=0)

    def positions(self, points: Floats, rows: slice = slice(None)) -> Floats:
        """Where points lie between the faces of some rows, shape (n, rows, power)."""
        chosen = HashPartitions(self.slabs.weights[rows], self.slabs.offsets[rows])
        return chosen.positions(points - self.origin)


def intersect(parts: Partitions, starts: Floats, *, reach: float, size: float, seed: int) -> Floats:
    """From each start, intersect one row's cells after the other with what is left of its surroundings.

    A region begins as the part of the box within ``reach`` of the start. Of the cells into which the next row
    cuts it, the one is kept that holds the highest total count met so far. The region is a polytope, sampled
    by hit-and-run, and ends when it is smaller than ``size`` or the rows are used up. Returns the middle of
    the fullest part of each region, shape (n, dim).

    Notes
    -----
    The intersection of all rows' cells at x has the total count R·f(x), so the fullest intersection is the
    mode (Coleman and Shrivastava, CCS 2021, section 4). Looking through all of them is exponential in the
    dimension; keeping one is not, and finds the mode in whose basin the first cells lie.
    """
    random = np.random.default_rng(seed)
    return np.array([_narrow(parts, start, reach, size, random) for start in starts])


def _narrow(
    parts: Partitions, start: Floats, reach: float, size: float, random: np.random.Generator
) -> Floats:
    weights, offsets = parts.slabs.weights, parts.slabs.offsets
    dim = len(start)
    normals = [np.eye(dim), -np.eye(dim)]
    limits = [np.minimum(parts.high, start + reach), -np.maximum(parts.low, start - reach)]
    cloud = _hit_and_run(np.vstack(normals), np.concatenate(limits), start[None], random)
    cloud[0] = start
    totals = parts.f(cloud)
    for row in range(len(weights)):
        best = cloud[totals.argmax()]
        # The fullest cell of this row is the one around the highest point.
        cell = np.floor(weights[row] @ (best - parts.origin) + offsets[row])
        shift = offsets[row] - weights[row] @ parts.origin
        inside = (np.floor(parts.positions(cloud, slice(row, row + 1))[:, 0]) == cell).all(axis=1)
        if inside.all():
            continue
        normals += [weights[row], -weights[row]]
        limits += [cell + 1.0 - shift, shift - cell]
        cloud, totals = cloud[inside], totals[inside]
        if np.ptp(cloud, axis=0).max() < size and len(cloud) >= _CLOUD // 8:
            break
        if len(cloud) < _CLOUD // 2:
            fresh = _hit_and_run(np.vstack(normals), np.concatenate(limits), cloud, random)
            cloud, totals = np.vstack([best, fresh]), np.concatenate([[totals.max()], parts.f(fresh)])
    top = totals >= np.quantile(totals, 0.75)
    middle: Floats = cloud[top].mean(axis=0)
    return middle


def _hit_and_run(normals: Floats, limits: Floats, seeds: Floats, random: np.random.Generator) -> Floats:
    """Points of the polytope ``normals·x ≤ limits``, from seeds inside it: each goes a random part of a
    random chord, a few times (Smith 1984).
    """
    points = seeds[random.integers(len(seeds), size=_CLOUD)]
    for _ in range(_STEPS):
        way = random.standard_normal(points.shape)
        speed = way @ normals.T
        room = limits - points @ normals.T
        with np.errstate(divide="ignore", invalid="ignore"):
            times = room / speed
        forward = np.where(speed > 1e-12, times, np.inf).min(axis=1)
        backward = np.where(speed < -1e-12, times, -np.inf).max(axis=1)
        length = backward + (forward - backward) * random.random(len(points))
        # A seed on a face, up to rounding, may have no room at all.
        length = np.where(forward > backward, length, 0.0)
        points = points + length[:, None] * way
    return points


def solve(parts: Partitions, *, most: int, seed: int) -> Floats:
    """The point that lies in, or nearest to, the fullest cells of the rows, by linear programming; then the
    next one, with the cells of the first taken out; ``most`` of them, shape (n, dim).

    Minimises Σ w·s over x in the box, where s ≥ 0 is how far x is outside a row's fullest slab and w how far
    its count stands out, then again with w/(s + ½), which lets go of slabs that belong to other modes
    (reweighted ℓ1, Candès, Wakin, Boyd 2008).

    Notes
    -----
    The linear-programming form of Coleman and Shrivastava's preprint, which gives no more than the idea: "to
    identify a point in a partition with the highest count values".
    """
    cloud = spread_points(parts.low, parts.high, 2048, seed)
    counts = parts.counts(cloud)
    slabs = np.floor(parts.positions(cloud))
    ordinary, spread = np.median(counts, axis=0), counts.std(axis=0) + 1e-12
    open_cells = np.ones(counts.shape, bool)
    rows = np.arange(counts.shape[1])
    found: list[Floats] = []
    for _ in range(most):
        masked = np.where(open_cells, counts, -np.inf)
        fullest = masked.argmax(axis=0)
        heavy = masked[fullest, rows]
        weight = np.where(np.isfinite(heavy), np.maximum(heavy - ordinary, 0.0) / spread, 0.0)
        chosen = np.argsort(-weight, kind="stable")[:_ROWS_OF_A_PROGRAM]
        chosen = chosen[weight[chosen] > 0.0]
        if not len(chosen):
            break
        x = _program(parts, chosen, slabs[fullest[chosen], chosen], weight[chosen])
        found.append(x)
        taken = np.floor(parts.positions(x[None])[0])
        open_cells &= (np.abs(slabs - taken) > 1.0).any(axis=2)
    return np.array(found).reshape(len(found), len(parts.low))


def _program(parts: Partitions, rows: NDArray[np.int64], slabs: Floats, weight: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    dim = len(parts.low)
    a = parts.slabs.weights[rows].reshape(-1, dim)
    b = (parts.slabs.offsets[rows] - parts.slabs.weights[rows] @ parts.origin).ravel()
    low = slabs.ravel() - b
    count = len(a)
    slack = -eye_array(count)
    matrix = vstack([hstack([csr_array(a), slack]), hstack([csr_array(-a), slack])], format="csr")
    limits = np.concatenate([low + 1.0, -low])
    box = [*zip(parts.low, parts.high, strict=True), *[(0.0, None)] * count]
    w = np.repeat(weight, a.shape[0] // len(rows))
    x = (parts.low + parts.high) / 2.0
    scale = w
    for _ in range(_REWEIGHTINGS):
        answer = linprog(np.concatenate([np.zeros(dim), scale]), matrix, limits, bounds=box, method="highs")
        if answer.x is None:
            break
        x, outside = answer.x[:dim], answer.x[dim:]
        scale = w / (outside + 0.5)
    return np.asarray(x, np.float64)
