"""Linear models from the private RACE sketch, through a surrogate loss that its kernel sums estimate.

Records z in the unit ball are counted by the asymmetric angular kernel, with p signed random projections per
row: W = 2^p cells. A query q collides with z with probability k(z·q) = (1 − arccos(z·q/‖q‖)/π)^p, increasing
in z·q. For regression z = (φ, v) and the query is ±(θ, −1): k(t) + k(−t) is even in the residual t and grows
with t². For classification z = φ, a sketch for each class, and the query is −y·θ: k(−y·θ·φ) falls with the
margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.asymmetric import AsymmetricAngularKernel
from hushsum.kernels.base import BallSignsKernel
from hushsum.methods.race import race
from hushsum.methods.sufficient_statistics import NoisyMoments
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.sketch import TableFunction
from hushsum.tally.tally import Tally

BITS = 4
"""p of the paper. It is also where noise costs least: a row gives p(p − 1)/2 products of signs from 2^p noisy
cells, and 2^p/(p(p − 1)/2) is least for p = 3 and p = 4.
"""

_CAUTION = 4.0
"""The ridge in units of the norm that the sketch's error has, σ√m: measured on public data."""


def surrogate_tally(coordinates: int, *, rows: int, seed: int) -> Tally:
    """An empty sketch for vectors of ``coordinates`` numbers in the unit ball."""
    return race(AsymmetricAngularKernel(dim=coordinates, bits=BITS), rows=rows, width=1 << BITS, seed=seed)


def regression_records(features: Floats, target: Floats, length: float) -> Floats:
    """z = (φ, v), scaled so that every coordinate weighs the same, and into the unit ball."""
    scale = math.sqrt(length**2 + 1.0)
    return np.column_stack((features * (length / scale), target / scale))


def rows_for_moments(count: float, epsilon: float, most: int) -> int:
    """The rows of a pure-ε sketch at which noise and hashing add the same error to a moment.

    The error of an entry has the variance (π²/4)·(N² + 2^p·2R²/ε²)/(p(p − 1)R), least at R = Nε/√(2^(p+1)).
    """
    return max(16, min(most, round(count * epsilon / math.sqrt(2.0 ** (BITS + 1)))))


@dataclass(frozen=True, slots=True, eq=False)
class SketchedMoments:
    """Estimates of Σ z zᵀ and Σ z from a released sketch, and the standard deviations of an entry's error."""

    second: Floats
    first: Floats
    sigma: float
    first_sigma: float
    count: float

    @classmethod
    def of(cls, function: ReleasedFunction) -> SketchedMoments:
        """Unbiased, and linear in the noisy table; post-processing.

        For a normal vector w and a unit vector z, E[sign(w·z)·w] = √(2/π)·z. The four hyperplanes of a row
        are independent, so with s_ij = Σ_z sign(wᵢ·z)·sign(wⱼ·z), which the 16 cells give exactly, (π/2)·s_ij
        times wᵢwⱼᵀ estimates Σ z zᵀ, six times per row.
        """
        if not isinstance(function, TableFunction) or not isinstance(function.kernel, BallSignsKernel):
            raise UsageError(
                parameter="moments",
                rule="are read from a sketch of the asymmetric angular kernel",
                got="another function",
            )
        kernel, rows = function.kernel, function.rows
        bits = kernel.signs()
        if function.basis.shape[1] != 1 << bits:
            raise UsageError(
                parameter="moments",
                rule="need a cell for every pattern of signs",
                got="folded cells",
                remedy="widen the rows",
            )
        seed: int = function.basis.parameters()["seed"]
        planes = kernel.directions(rows=rows, seed=seed).astype(np.float64)
        patterns = np.where((np.arange(1 << bits)[:, None] >> np.arange(bits)) & 1, 1.0, -1.0)
        table = function.table.astype(np.float64)
        singles = table @ patterns
        first = np.einsum("rk,rka->a", singles, planes) * math.sqrt(math.pi / 2.0) / (bits * rows)
        second = np.zeros((kernel.dim + 1, kernel.dim + 1))
        squares = 0.0
        for i in range(bits):
            for j in range(i + 1, bits):
                products = table @ (patterns[:, i] * patterns[:, j])
                second += (planes[:, i] * products[:, None]).T @ planes[:, j]
                squares += float(products @ products)
        pairs = rows * bits * (bits - 1) / 2.0
        second = (second + second.T) * (math.pi / 4.0 / pairs)
        sigma = math.pi / 2.0 * math.sqrt(squares / pairs / pairs / 2.0)
        first_sigma = math.sqrt(math.pi / 2.0 * float(np.mean(singles**2)) / (bits * rows))
        return cls(second[:-1, :-1], first[:-1], sigma, first_sigma, function.count)


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
    mean = float(_shrunken(target.cross[:1] / count, target.sigma / count)[0])
    # z = (1, u, v)/scale: second moments of the columns u and v, and their first.
    middle = _shrunken(moments.first[1:-1] * scale / count, moments.first_sigma * scale / count)
    gram = moments.second[1:-1, 1:-1] * scale**2 / count - np.outer(middle, middle)
    cross = moments.second[1:-1, -1] * scale**2 / count - middle * mean
    slopes = _ridge(gram, cross, moments.sigma * scale**2 / count)
    theta: Floats = np.concatenate(([mean - slopes @ middle], slopes)) * length
    return theta


def _ridge(gram: Floats, cross: Floats, sigma: float) -> Floats:
    """The solution with a ridge that covers errors of deviation ``sigma`` in every entry."""
    if not len(gram):
        return cross
    values, vectors = np.linalg.eigh(gram)
    error = sigma * math.sqrt(len(values))
    solution: Floats = vectors @ (vectors.T @ cross / (np.maximum(values, 0.0) + _CAUTION * error))
    return solution


def _shrunken(means: Floats, deviation: float) -> Floats:
    """Noisy means between −1 and 1, or zeros where noise explains half of their length."""
    noise = len(means) * deviation**2
    kept = means if float(means @ means) > 2.0 * noise else np.zeros(len(means))
    return np.clip(kept, -1.0, 1.0)


def regression_loss(sketch: ReleasedFunction, thetas: Floats, length: float) -> Floats:
    """The surrogate loss of models θ, shape (n_models,): mean kernel values at both signs of (θ, −1).

    For small residuals t it is 2^(1−p)·(1 + p(p − 1)/2·(2t/π)²) with t = (v − θ·φ)/‖(θ, −1)‖ in the sketch's
    units, so its least values are those of the squared error, up to the length of (θ, −1).
    """
    queries = np.column_stack((thetas / length, -np.ones(len(thetas))))
    loss: Floats = sketch(queries) + sketch(-queries)
    return loss


def fit_classifier(
    first: ReleasedFunction, second: ReleasedFunction, length: float, *, seed: int, rounds: int = 30
) -> Floats:
    """θ of a linear classifier, θ·φ > 0 for the second class, from one sketch of φ for each class.

    Starts half way between the means of the classes, across the direction in which they differ most beside
    the spread within them (Fisher), all read off the sketches' moments. Then it searches for a lower
    surrogate margin loss (`margin_loss`) without derivatives.
    """
    classes = [SketchedMoments.of(each) for each in (first, second)]
    numbers = [max(each.count, 1.0) for each in classes]
    means = [
        _shrunken(each.first[1:] * length / number, each.first_sigma * length / number)
        for each, number in zip(classes, numbers, strict=True)
    ]
    spread = np.zeros((len(means[0]), len(means[0])))
    variance = 0.0
    for each, number, mean in zip(classes, numbers, means, strict=True):
        spread += (each.second[1:, 1:] * length**2 / number - np.outer(mean, mean)) / 2.0
        variance += (each.sigma * length**2 / number / 2.0) ** 2
    slopes = _ridge(spread, means[1] - means[0], math.sqrt(variance))
    start = np.concatenate(([-slopes @ (means[0] + means[1]) / 2.0], slopes))
    if not start.any():
        return start
    return search(lambda thetas: margin_loss(first, second, thetas), start, seed=seed, rounds=rounds)


def margin_loss(first: ReleasedFunction, second: ReleasedFunction, thetas: Floats) -> Floats:
    """The surrogate margin loss of planes θ, shape (n_planes,), each class with the same weight.

    The mean over a class of k(−y·θ·φ/‖θ‖), y = −1 for the first: the chance that a record collides with the
    far side, which falls with its margin.
    """
    loss: Floats = first(thetas) + second(-thetas)
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

    In every round a batch of unit vectors is queried at once. The mean of its best quarter is the next
    centre, and the spread falls by a tenth. The candidate of the least loss over all rounds is not taken: it
    would be the luckiest, not the best.
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
