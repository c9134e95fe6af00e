"""The hash families of the sketch in NumPy: slow, and plain enough to be checked by eye."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hushsum import _native

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]
Cells = npt.NDArray[np.int32]
Array = npt.NDArray[Any]


def fused_multiply_add(a: Floats, b: Floats, c: Floats) -> Floats:
    """a·b + c, rounded once to float32.

    A product of two float32 is exact in float64. The sum is rounded to odd there (the error-free sum tells
    which way), so that the second rounding, to float32, sees on which side of a tie the exact value lies
    (Boldo and Melquiond 2008).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        addend = np.broadcast_to(c.astype(np.float64), product.shape)
        total = product + addend
        virtual = total - product
        error = (product - (total - virtual)) + (addend - virtual)
        even = (total.view(np.int64) & 1) == 0
        towards = np.where(error > 0, np.inf, -np.inf)
        odd = np.where(np.isfinite(total) & (error != 0) & even, np.nextafter(total, towards), total)
        return odd.astype(np.float32)


def projections(weights: Floats, offsets: Floats, records: Floats) -> Floats:
    """z[n, r, i] by the chain of fused multiply-adds over the columns, from the offset."""
    total = np.broadcast_to(offsets, (len(records), *offsets.shape))
    for k in range(records.shape[1]):
        total = fused_multiply_add(weights[None, :, :, k], records[:, None, None, k], total)
    return total


def hadamard(values: Floats) -> Floats:
    """The unnormalised Hadamard transform of the last axis, butterflies from the widest to the narrowest."""
    size = values.shape[-1]
    half = size // 2
    while half:
        pairs = values.reshape(*values.shape[:-1], -1, 2, half)
        first, second = pairs[..., 0, :], pairs[..., 1, :]
        values = np.stack([first + second, first - second], axis=-2).reshape(values.shape)
        half //= 2
    return values


def floor_words(z: Floats) -> Words:
    """Floors, clamped to ±2^30; NaN becomes the lower bound."""
    bound = np.float32(2.0**30)
    with np.errstate(invalid="ignore"):
        clamped = np.where(z > -bound, z, -bound)
        clamped = np.where(clamped < bound, clamped, bound)
    return np.floor(clamped).astype(np.int32).view(np.uint32)


def sign_words(z: Floats) -> Words:
    """The bits z >= 0 of the last axis, packed little-endian into 32-bit words."""
    bits = z >= 0
    words = [
        sum(
            (
                bits[..., i].astype(np.uint32) << np.uint32(i - start)
                for i in range(start, min(start + 32, z.shape[-1]))
            ),
            start=np.zeros(z.shape[:-1], np.uint32),
        )
        for start in range(0, z.shape[-1], 32)
    ]
    return np.stack(words, axis=-1).astype(np.uint32)


def scatter(words: Words) -> Words:
    """The bijection of words that leaves no arithmetic progression one."""
    product: Words = words * np.uint32(0x9E3779B1)
    return product ^ (product >> np.uint32(16))


def fold(words: Words, multipliers: Array, addends: Array, width: int, scattered: bool = False) -> Cells:
    """Vector multiply-shift hashing of words[n, r, i] into [0, width)."""
    words = scatter(words) if scattered else words
    total = (words.astype(np.uint64) * multipliers).sum(axis=-1, dtype=np.uint64) + addends
    cells: Cells = ((total >> np.uint64(32)) * np.uint64(width) >> np.uint64(32)).astype(np.int32)
    return cells


def labels(values: Array, salt: int) -> Words:
    """The upper half of SplitMix64's finaliser of value XOR salt."""
    x = values.astype(np.int64).view(np.uint64) ^ np.uint64(salt)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)


def tally(cells: Cells, width: int) -> npt.NDArray[np.int64]:
    """counters[r, c]: how many records have cell c in row r."""
    return np.stack([np.bincount(row, minlength=width) for row in cells.T]).astype(np.int64)


def mean_and_variance(values: Array, block: int) -> tuple[Array, Array]:
    """The mean over rows of values[n, r], and its variance estimated from blocks of consecutive rows."""
    rows = values.shape[1]
    starts = np.arange(0, rows, block)
    sizes = np.diff(np.append(starts, rows))
    mean = values.mean(axis=1)
    if len(starts) < 2:
        return mean, np.full(len(values), np.nan)
    block_means = np.add.reduceat(values.astype(np.float64), starts, axis=1) / sizes
    spread = (sizes * (block_means - mean[:, None]) ** 2).sum(axis=1)
    return mean, spread / ((len(starts) - 1) * rows)


def uniform(rng: np.random.Generator, *shape: int) -> Floats:
    """Floats between -2 and 2, from integers alone: the same on every platform and version of NumPy."""
    return (rng.integers(-(2**24), 2**24, shape) * 2.0**-23).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Projections:
    """Dense projections with the parameters of `ProjectionHasher`."""

    weights: Floats
    offsets: Floats
    multipliers: Array
    addends: Array
    width: int
    signs: bool
    fold: bool
    scattered: bool = False

    @classmethod
    def draw(
        cls, seed: int, rows: int, power: int, dim: int, width: int, signs: bool = False, fold: bool = True
    ) -> "Projections":
        rng = np.random.default_rng(seed)
        words = -(-power // 32) if signs else power
        return cls(
            weights=uniform(rng, rows, power, dim),
            offsets=(rng.random((rows, power)) * (0 if signs else 1)).astype(np.float32),
            multipliers=rng.integers(0, 2**64, (rows, words), dtype=np.uint64),
            addends=rng.integers(0, 2**64, rows, dtype=np.uint64),
            width=width,
            signs=signs,
            fold=fold,
        )

    def native(self) -> _native.ProjectionHasher:
        return _native.ProjectionHasher(
            self.weights,
            self.offsets,
            self.multipliers,
            self.addends,
            self.width,
            self.signs,
            self.fold,
            self.scattered,
        )

    def cells(self, records: Floats) -> Cells:
        z = projections(self.weights, self.offsets, records)
        words = sign_words(z) if self.signs else floor_words(z)
        return (
            fold(words, self.multipliers, self.addends, self.width, self.scattered)
            if self.fold
            else words[..., 0].astype(np.int32)
        )


@dataclass(frozen=True, slots=True)
class Structured:
    """Structured projections with the parameters of `StructuredHasher`."""

    signs: npt.NDArray[np.int8]
    dim: int
    rows: int
    power: int
    scale: np.float32
    offsets: Floats
    multipliers: Array
    addends: Array
    width: int
    sign_mode: bool
    fold: bool
    block_rows: int
    scattered: bool = False

    @classmethod
    def draw(
        cls,
        seed: int,
        rows: int,
        power: int,
        dim: int,
        width: int,
        size: int,
        block_rows: int,
        sign_mode: bool = False,
        fold: bool = True,
    ) -> "Structured":
        rng = np.random.default_rng(seed)
        blocks = -(-rows // block_rows)
        words = -(-power // 32) if sign_mode else power
        return cls(
            signs=rng.choice(np.array([-1, 1], np.int8), (blocks, 3, size)),
            dim=dim,
            rows=rows,
            power=power,
            scale=np.float32(1 / size),
            offsets=(rng.random((rows, power)) * (0 if sign_mode else 1)).astype(np.float32),
            multipliers=rng.integers(0, 2**64, (rows, words), dtype=np.uint64),
            addends=rng.integers(0, 2**64, rows, dtype=np.uint64),
            width=width,
            sign_mode=sign_mode,
            fold=fold,
            block_rows=block_rows,
        )

    def native(self) -> _native.StructuredHasher:
        return _native.StructuredHasher(
            self.signs,
            self.dim,
            self.rows,
            self.power,
            float(self.scale),
            self.offsets,
            self.multipliers,
            self.addends,
            self.width,
            self.sign_mode,
            self.fold,
            self.block_rows,
            self.scattered,
        )

    def cells(self, records: Floats) -> Cells:
        padded = np.zeros((len(records), self.signs.shape[2]), np.float32)
        padded[:, : self.dim] = records
        parts = []
        for block, signs in enumerate(self.signs):
            y = padded
            for diagonal in signs:
                y = hadamard(y * diagonal.astype(np.float32))
            first = block * self.block_rows
            rows = min(self.block_rows, self.rows - first)
            used = y[:, : rows * self.power].reshape(len(records), rows, self.power)
            parts.append(
                fused_multiply_add(used, np.full_like(used, self.scale), self.offsets[first : first + rows])
            )
        z = np.concatenate(parts, axis=1)
        words = sign_words(z) if self.sign_mode else floor_words(z)
        return (
            fold(words, self.multipliers, self.addends, self.width, self.scattered)
            if self.fold
            else words[..., 0].astype(np.int32)
        )


@dataclass(frozen=True, slots=True)
class Minima:
    """Min-wise hashes with the parameters of `MinHasher`."""

    mixers: Words
    shifts: Words
    salt: int
    multipliers: Array
    addends: Array
    width: int
    scattered: bool = False

    @classmethod
    def draw(cls, seed: int, rows: int, power: int, width: int) -> "Minima":
        rng = np.random.default_rng(seed)
        return cls(
            mixers=rng.integers(0, 2**31, (rows, power), dtype=np.uint32) * np.uint32(2) + np.uint32(1),
            shifts=rng.integers(0, 2**32, (rows, power), dtype=np.uint32),
            salt=int(rng.integers(0, 2**64, dtype=np.uint64)),
            multipliers=rng.integers(0, 2**64, (rows, power + 1), dtype=np.uint64),
            addends=rng.integers(0, 2**64, rows, dtype=np.uint64),
            width=width,
        )

    def native(self) -> _native.MinHasher:
        return _native.MinHasher(
            self.mixers, self.shifts, self.salt, self.multipliers, self.addends, self.width, self.scattered
        )

    def cells(self, values: Array, indptr: Array) -> Cells:
        words = np.zeros((len(indptr) - 1, *self.mixers.shape[:1], self.mixers.shape[1] + 1), np.uint32)
        for j, (start, end) in enumerate(pairwise(indptr)):
            if start == end:
                words[j, :, -1] = 1
            else:
                g = labels(values[start:end], self.salt)
                words[j, :, :-1] = (self.mixers[..., None] * g + self.shifts[..., None]).min(axis=-1)
        return fold(words, self.multipliers, self.addends, self.width, self.scattered)


@dataclass(frozen=True, slots=True)
class Codes:
    """Sampled coordinates with the parameters of `CodeHasher`."""

    columns: npt.NDArray[np.int32]
    multipliers: Array
    addends: Array
    width: int
    scattered: bool = False

    @classmethod
    def draw(cls, seed: int, rows: int, power: int, dim: int, width: int) -> "Codes":
        rng = np.random.default_rng(seed)
        return cls(
            columns=rng.integers(0, dim, (rows, power), dtype=np.int32),
            multipliers=rng.integers(0, 2**64, (rows, power), dtype=np.uint64),
            addends=rng.integers(0, 2**64, rows, dtype=np.uint64),
            width=width,
        )

    def native(self) -> _native.CodeHasher:
        return _native.CodeHasher(self.columns, self.multipliers, self.addends, self.width, self.scattered)

    def cells(self, records: npt.NDArray[np.int32]) -> Cells:
        return fold(
            records[:, self.columns].view(np.uint32),
            self.multipliers,
            self.addends,
            self.width,
            self.scattered,
        )
