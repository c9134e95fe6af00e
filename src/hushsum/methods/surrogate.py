"""Linear models from the private RACE sketch, through a surrogate loss that its kernel sums estimate.

Records in the unit ball are made unit vectors z̃ by one more coordinate, √(1 − ‖z‖²), and counted by p signed
random projections a row: W = 2^p cells. A query with a unit vector q and no further coordinate collides with
z̃ with probability k(z·q) = (1 − arccos(z·q)/π)^p, increasing in z·q. For regression z = (φ, v) and the query
is ±(θ, −1): k(t) + k(−t) is even in the residual t and grows with t². For classification z = y·φ and the
query is −θ: k(−y·θ·φ) falls with the margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.kernels.angular import AngularKernel
from hushsum.methods.race import race
from hushsum.methods.sufficient_statistics import NoisyMoments
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.table import TableFunction
from hushsum.tally.tally import Tally

Floats = NDArray[np.float64]

BITS = 4
"""p of the paper. It is also where noise costs least: a row tells p(p − 1)/2 products of signs from 2^p noisy
cells, and 2^p/(p(p − 1)/2) is least for p = 3 and p = 4.
"""

_CAUTION = 4.0
"""The ridge in units of the norm that the sketch's error has, σ√m: measured on public data."""


def surrogate_tally(coordinates: int, *, rows: int, seed: int) -> Tally:
    """An empty sketch for unit vectors made by `on_sphere` of ``coordinates`` numbers."""
    return race(AngularKernel(dim=coordinates + 1, bits=BITS), rows=rows, width=1 << BITS, seed=seed)


def on_sphere(records: Floats) -> Floats:
    """Records of the unit ball with the coordinate that makes them unit vectors.

    Squares are summed column by column: a record's bits depend on that record alone.

    >>> on_sphere(np.array([[0.6, 0.0]]))
    array([[0.6, 0. , 0.8]])
    """
    square = np.zeros(len(records))
    for column in range(records.shape[1]):
        square += records[:, column] * records[:, column]
    return np.column_stack((records, np.sqrt(np.maximum(1.0 - square, 0.0))))


def regression_records(features: Floats, target: Floats, length: float) -> Floats:
    """z̃ of (φ, v): both scaled so that every coordinate weighs the same, and into the unit ball."""
    scale = math.sqrt(length**2 + 1.0)
    return on_sphere(np.column_stack((features * (length / scale), target / scale)))


def rows_for_moments(count: float, epsilon: float, most: int) -> int:
    """The rows of a pure-ε sketch at which noise and hashing add the same error to a moment.

    The error of an entry has the variance (π²/4)·(N² + 2^p·2R²/ε²)/(p(p − 1)R), least at R = Nε/√(2^(p+1)).
    """
    return max(16, min(most, round(count * epsilon / math.sqrt(2.0 ** (BITS + 1)))))


@dataclass(frozen=True, slots=True, eq=False)
class SketchedMoments:
    """Estimates of Σ z zᵀ and Σ z from a released sketch, and the standard deviation of an entry's error."""

    second: Floats
    first: Floats
    sigma: float
    count: float

    @classmethod
    def of(cls, function: ReleasedFunction) -> SketchedMoments:
        """Unbiased, and linear in the noisy table; post-processing.

        For a normal vector w and a unit vector z, E[sign(w·z)·w] = √(2/π)·z. The four hyperplanes of a row
        are independent, so with s_ij = Σ_z sign(wᵢ·z)·sign(wⱼ·z), which the 16 cells tell exactly, (π/2)·s_ij
        times wᵢwⱼᵀ estimates Σ z zᵀ, six times a row.
        """
        if not isinstance(function, TableFunction) or not isinstance(function.kernel, AngularKernel):
            raise UsageError("moments are read from a sketch of the angular kernel, got another function")
        kernel, rows = function.kernel, function.rows
        bits = kernel.bits * kernel.power
        if function.basis.shape[1] != 1 << bits:
            raise UsageError(
                "moments need a cell for every pattern of signs, got folded cells; widen the rows"
            )
        seed: int = function.basis.parameters()["seed"]
        planes = kernel.directions(rows=rows, seed=seed).astype(np.float64)
        patterns = np.where((np.arange(1 << bits)[:, None] >> np.arange(bits)) & 1, 1.0, -1.0)
        table = function.table.astype(np.float64)
        singles = table @ patterns
        first = np.einsum("rk,rka->a", singles, planes) * math.sqrt(math.pi / 2.0) / (bits * rows)
        second = np.zeros((kernel.dim, kernel.dim))
        squares = 0.0
        for i in range(bits):
            for j in range(i + 1, bits):
                products = table @ (patterns[:, i] * patterns[:, j])
                second += (planes[:, i] * products[:, None]).T @ planes[:, j]
                squares += float(products @ products)
        pairs = rows * bits * (bits - 1) / 2.0
        second = (second + second.T) * (math.pi / 4.0 / pairs)
        sigma = math.pi / 2.0 * math.sqrt(squares / pairs / pairs / 2.0)
        return cls(second[:-1, :-1], first[:-1], sigma, function.count)


def fit_regression(sketch: ReleasedFunction, level: ReleasedFunction, length: float) -> Floats:
    """θ with v ≈ θ·φ from the sketch of z = (φ, v) and the released moments of the target alone.

    The minimum of the surrogate's second-order part, a quadratic form that `SketchedMoments` reads off the
    whole table at once, with a ridge on the slopes in proportion to the sketch's error. The target's mean is
    released apart: it takes little budget, and without any slope the model is that mean.
    """
    moments = SketchedMoments.of(sketch)
    scale = math.sqrt(length**2 + 1.0)
    target = NoisyMoments.of(level)
    count = max(moments.count, 1.0)
    mean = float(np.clip(target.cross[0] / max(target.gram[0, 0], 1e-9), -1.0, 1.0))
    # z = (1, u, v)/scale: second moments of the columns u and v, and their first.
    middle = moments.first[1:-1] * scale / count
    middle = np.clip(middle, -1.0, 1.0)
    gram = moments.second[1:-1, 1:-1] * scale**2 / count - np.outer(middle, middle)
    cross = moments.second[1:-1, -1] * scale**2 / count - middle * mean
    ridge = _CAUTION * moments.sigma * scale**2 / count * math.sqrt(len(moments.first))
    values, vectors = np.linalg.eigh(gram)
    slopes = vectors @ (vectors.T @ cross / (np.maximum(values, 0.0) + ridge))
    theta: Floats = np.concatenate(([mean - slopes @ middle], slopes)) * length
    return theta


def regression_loss(sketch: ReleasedFunction, thetas: Floats, length: float) -> Floats:
    """The surrogate loss of models θ, shape (n_models,): mean kernel values at both signs of (θ, −1).

    For small residuals t it is 2^(1−p)·(1 + p(p − 1)/2·(2t/π)²) with t = (v − θ·φ)/‖(θ, −1)‖ in the sketch's
    units, so its least values are those of the squared error, up to the length of (θ, −1).
    """
    queries = np.column_stack((thetas / length, -np.ones(len(thetas)), np.zeros(len(thetas))))
    loss: Floats = sketch(queries) + sketch(-queries)
    return loss


def fit_classifier(sketch: ReleasedFunction, *, seed: int, rounds: int = 30) -> Floats:
    """θ of a linear classifier sign(θ·φ) from the sketch of z = y·φ.

    Starts at the ridge regression of y on φ, whose sums Σφφᵀ and Σyφ are the second and first moments of z,
    and then searches for the least surrogate margin loss (`margin_loss`) without derivatives.
    """
    moments = SketchedMoments.of(sketch)
    count = max(moments.count, 1.0)
    ridge = _CAUTION * moments.sigma / count * math.sqrt(len(moments.first))
    values, vectors = np.linalg.eigh(moments.second / count)
    start: Floats = vectors @ (vectors.T @ (moments.first / count) / (np.maximum(values, 0.0) + ridge))
    size = float(np.linalg.norm(start))
    if size == 0.0:
        return start
    return search(lambda thetas: margin_loss(sketch, thetas), start / size, seed=seed, rounds=rounds)


def margin_loss(sketch: ReleasedFunction, thetas: Floats) -> Floats:
    """The surrogate margin loss, shape (n_models,): mean over records of k(−y·θ·φ/‖θ‖), falling with the
    margin.
    """
    loss: Floats = sketch(np.column_stack((-thetas, np.zeros(len(thetas)))))
    return loss


def search(
    loss: Callable[[Floats], Floats],
    start: Floats,
    *,
    seed: int,
    rounds: int,
    batch: int = 64,
    spread: float = 0.1,
) -> Floats:
    """A point of lower loss near ``start``, by sampling around the best so far; no derivatives.

    In every round a batch of unit vectors is asked at once. The mean of its best quarter is the next centre,
    and the spread falls by a tenth. The candidate of the least loss over all rounds is not taken: it would be
    the luckiest, not the best.
    """
    rng = np.random.default_rng(seed)
    centre = start / np.linalg.norm(start)
    for _ in range(rounds):
        steps = rng.normal(size=(batch, len(centre))) * (spread / math.sqrt(len(centre)))
        candidates = centre + np.concatenate((steps, -steps))
        candidates /= np.linalg.norm(candidates, axis=1)[:, None]
        best = np.argsort(loss(candidates), kind="stable")[: batch // 2]
        centre = candidates[best].mean(axis=0)
        centre /= np.linalg.norm(centre)
        spread *= 0.9
    return centre
