"""Fourier features in NumPy: the same operations in the same order, one after the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.oracles.hashing import fused_multiply_add, hadamard

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

AMPLITUDE = 1023.0
ROUNDER = np.float32(3 * 2**22)
SINE = [
    6.28318281855543,
    -41.34142139902815,
    81.59618388037231,
    -76.58010059069983,
    41.20539511562007,
    -12.27126270500227,
]
COSINE = [-19.739049627337103, 64.93027910833467, -85.28685244792894, 58.85254905884002, -21.162601230825686]


def phases(frequencies: Floats, records: Floats) -> Floats:
    """t[n, r] by the chain of fused multiply-adds over the columns, from 0."""
    total = np.zeros((len(records), len(frequencies)), np.float32)
    for k in range(records.shape[1]):
        total = fused_multiply_add(frequencies[None, :, k], records[:, None, k], total)
    return total


def fraction(t: Floats) -> Floats:
    """t less the nearest integer, clamped to ±1/2; what is no number becomes −1/2."""
    with np.errstate(over="ignore", invalid="ignore"):
        u = t - ((t + ROUNDER) - ROUNDER)
        u = np.where(u > np.float32(-0.5), u, np.float32(-0.5))
        return np.where(u < np.float32(0.5), u, np.float32(0.5))


def polynomial(terms: list[float], amplitude: float, x: Floats) -> Floats:
    """Horner's rule in fused multiply-adds, with coefficients rounded to float32."""
    value = np.full_like(x, np.float32(amplitude * terms[-1]))
    for term in reversed(terms[:-1]):
        value = fused_multiply_add(value, x, np.full_like(x, np.float32(amplitude * term)))
    return value


def integers_of_phases(t: Floats) -> Integers:
    """The two integers of each phase, on a new last axis."""
    u = fraction(t)
    square = u * u
    cosine = fused_multiply_add(
        square, polynomial(COSINE, AMPLITUDE, square), np.full_like(u, np.float32(AMPLITUDE) + ROUNDER)
    )
    sine = fused_multiply_add(u, polynomial(SINE, AMPLITUDE, square), np.full_like(u, ROUNDER))
    pair = np.stack([cosine, sine], axis=-1)
    return (pair.view(np.int32).astype(np.int64)) - int(ROUNDER.view(np.int32))


def integers(frequencies: Floats, records: Floats) -> Integers:
    """What each record adds to each row, shape (records, rows, 2)."""
    return integers_of_phases(phases(frequencies, records))


def structured_phases(signs: npt.NDArray[np.int8], scales: Floats, records: Floats) -> Floats:
    """t[n, r] of three rounds of signs and Hadamard transforms per block, times the scale of the row."""
    blocks, _, size = signs.shape
    padded = np.zeros((len(records), 1, size), np.float32)
    padded[:, 0, : records.shape[1]] = records
    with np.errstate(over="ignore", invalid="ignore"):
        y = np.broadcast_to(padded, (len(records), blocks, size))
        for turn in range(3):
            y = hadamard(y * signs[None, :, turn].astype(np.float32))
        return y.reshape(len(records), -1)[:, : len(scales)] * scales


def structured_integers(signs: npt.NDArray[np.int8], scales: Floats, records: Floats) -> Integers:
    """What each record adds to each row of structured features, shape (records, rows, 2)."""
    return integers_of_phases(structured_phases(signs, scales, records))


def row_spread(products: Doubles, block: int) -> tuple[Doubles, Doubles]:
    """The mean over rows, and its variance from the means of blocks weighted with their sizes."""
    rows = products.shape[1]
    starts = np.arange(0, rows, block)
    sizes = np.diff(np.append(starts, rows))
    means = np.add.reduceat(products, starts, axis=1) / sizes
    mean = products.mean(axis=1)
    squares = (sizes * (means - mean[:, None]) ** 2).sum(axis=1)
    return mean, squares / ((len(starts) - 1) * rows)


def orthogonal(rows: Doubles) -> Doubles:
    """Modified Gram–Schmidt in blocks, each row keeping its length; sums in another order than the loops."""
    dim = rows.shape[1]
    turned = rows.copy()
    for r in range(len(turned)):
        for earlier in range(r // dim * dim, r):
            turned[r] -= (turned[r] @ turned[earlier]) * turned[earlier]
        turned[r] /= np.linalg.norm(turned[r])
    turned *= np.linalg.norm(rows, axis=1)[:, None]
    return turned
