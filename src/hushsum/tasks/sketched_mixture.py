"""Mixtures fitted to released Fourier features: what k normal laws would add to each feature, by descent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.fourier_feature_errors import AMPLITUDE
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.tasks.cells import Cells

Waves = NDArray[np.complex128]

_CANDIDATES: Final = 2048
_STARTS: Final = 6
_MOST_FEATURES: Final = 1024
"""Features that are fitted; more make it slower, and say little about so few numbers."""
_WIDEST: Final = 0.5
"""The largest standard deviation of a component, in units of the longest side of the box."""
_NARROWEST: Final = 0.2
"""The smallest, in units of 1/(2π·f) for the longest frequencies: finer spreads do not change a feature."""
_STEPS_OF_ONE: Final = 40
_STEPS_OF_ALL: Final = 60
_LAST_STEPS: Final = 300


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The mean of e^{2πi·f·x} over the records at m public frequencies f, and its noise; public.

    Frequencies are per unit of the data, and places are relative to the centre of the box.
    """

    frequencies: Floats
    waves: Waves

    def log_widths(self, side: float) -> tuple[float, float]:
        """Between what the logarithm of a component's standard deviation lies, in units of a side."""
        longest = float(np.quantile(np.linalg.norm(self.frequencies, axis=1), 0.9))
        least = _NARROWEST / (2.0 * np.pi * max(longest, 1e-300) * side)
        return float(np.log(min(max(least, 1e-6), _WIDEST / 2.0))), float(np.log(_WIDEST))

    @classmethod
    def of(cls, function: CoefficientFunction) -> Sketch:
        """That of a release of Fourier features."""
        basis = function.basis
        assert isinstance(basis, FourierFeatures)
        number = min(basis.features, _MOST_FEATURES)
        table = np.asarray(function.table[:number], np.float64)
        unit = basis.groups / (AMPLITUDE * max(function.count, 1.0))
        waves: Waves = np.asarray(unit * (table[:, 0] + 1j * table[:, 1]), np.complex128)
        return cls(basis.frequencies[:number].astype(np.float64), waves)


@dataclass(frozen=True, slots=True, eq=False)
class _Components:
    """Weights, means and variances, shape (number, 1), of normal laws that vary equally in all columns."""

    weights: Floats
    means: Floats
    variances: Floats

    def packed(self, low: Floats, scale: Floats) -> Floats:
        return np.concatenate(
            (
                self.weights,
                ((self.means - low) / scale).reshape(-1),
                0.5 * np.log(self.variances / scale.max() ** 2).reshape(-1),
            )
        )

    @classmethod
    def unpacked(cls, values: Floats, dim: int, low: Floats, scale: Floats) -> _Components:
        number = len(values) // (2 + dim)
        means = values[number : number + number * dim].reshape(number, dim)
        logs = values[number + number * dim :].reshape(number, 1)
        return cls(values[:number], low + scale * means, np.exp(2.0 * logs) * scale.max() ** 2)


def sketched_cells(
    function: CoefficientFunction, number: int, low: Floats, high: Floats, *, seed: int
) -> Cells:
    """Normal components whose Fourier features are nearest to the released ones, as cells.

    Orthogonal matching pursuit with replacement: a component is added where the residual is largest, the
    lightest goes where there are too many, and all are moved together by descent; as often as twice the
    number of components. A component varies equally in all columns.

    Parameters
    ----------
    function : CoefficientFunction
        Of Fourier features.
    number : int
        How many components.
    low, high : arrays of shape (dim,)
        The box, relative to the origin of the features.

    Notes
    -----
    Keriven, Bourrier, Gribonval and Pérez, *Sketching for large-scale learning of mixture models*, 2018;
    Keriven, Tremblay, Traonmilin and Gribonval, *Compressive k-means*, 2017; Chatalic et al., *Compressive
    learning with privacy guarantees*, 2022. Components of k-means are points there; with a spread of their
    own their places do not depend on how wide the records lie around them.
    """
    rng = np.random.default_rng(seed)
    sketch = Sketch.of(function)
    scale = high - low
    dim = len(low)
    found = _Components(np.empty(0), np.empty((0, dim)), np.empty((0, 1)))
    for step in range(2 * number):
        residual = sketch.waves - _waves(found, sketch.frequencies)
        added = _added(sketch, residual, low, high, rng)
        found = _Components(
            np.append(found.weights, 1.0 / (step + 1)),
            np.vstack((found.means, added.means)),
            np.vstack((found.variances, added.variances)),
        )
        if len(found.weights) > number:
            kept = np.argsort(-_refitted(found, sketch), kind="stable")[:number]
            found = _Components(found.weights[kept], found.means[kept], found.variances[kept])
        last = step == 2 * number - 1
        found = _descended(sketch, found, low, scale, _LAST_STEPS if last else _STEPS_OF_ALL)
    total = max(float(found.weights.sum()), 1e-12)
    order = np.argsort(-found.weights, kind="stable")
    return Cells(
        max(function.count, 1.0) * found.weights[order] / total,
        found.means[order],
        np.repeat(found.variances[order], dim, axis=1),
    )


def _atoms(means: Floats, variances: Floats, frequencies: Floats) -> Waves:
    """E e^{2πi·f·x} of each component, shape (components, m)."""
    phases = 2j * np.pi * (means @ frequencies.T)
    return np.asarray(np.exp(phases - 2.0 * np.pi**2 * (variances * np.square(frequencies).sum(axis=1))))


def _waves(found: _Components, frequencies: Floats) -> Waves:
    if not len(found.weights):
        return np.zeros(len(frequencies), np.complex128)
    return np.asarray(found.weights @ _atoms(found.means, found.variances, frequencies))


def _refitted(found: _Components, sketch: Sketch) -> Floats:
    """Weights of all components together, not negative, by least squares."""
    from scipy.optimize import nnls

    atoms = _atoms(found.means, found.variances, sketch.frequencies)
    weights, _ = nnls(
        np.hstack((atoms.real, atoms.imag)).T, np.concatenate((sketch.waves.real, sketch.waves.imag))
    )
    return np.asarray(weights, np.float64)


def _added(
    sketch: Sketch, residual: Waves, low: Floats, high: Floats, rng: np.random.Generator
) -> _Components:
    """One component along which the residual is largest: the best of several climbs."""
    from scipy.optimize import minimize

    dim, scale = len(low), high - low
    candidates = rng.uniform(low, high, (_CANDIDATES, dim))
    heights = np.concatenate(
        [
            (np.exp(-2j * np.pi * (some @ sketch.frequencies.T)) @ residual).real
            for some in np.array_split(candidates, 8)
        ]
    )
    starts = candidates[np.argsort(-heights)[:_STARTS]]
    widths = sketch.log_widths(float(scale.max()))
    bounds = [(0.0, 1.0)] * dim + [widths]
    best, value = None, np.inf
    for start in starts:
        packed = np.append((start - low) / scale, min(max(np.log(0.1), widths[0]), widths[1]))
        climbed = minimize(
            partial(_overlap, sketch=sketch, residual=residual, low=low, scale=scale),
            packed,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _STEPS_OF_ONE},
        )
        if climbed.fun < value:
            best, value = climbed.x, climbed.fun
    assert best is not None
    width = np.exp(2.0 * best[-1]) * scale.max() ** 2
    return _Components(np.ones(1), (low + scale * best[:-1])[None], np.full((1, 1), width))


def _overlap(
    packed: Floats, *, sketch: Sketch, residual: Waves, low: Floats, scale: Floats
) -> tuple[float, Floats]:
    """−⟨residual, atom⟩/‖atom‖ of one component of equal variances, and its gradient."""
    frequencies = sketch.frequencies
    mean, variance = low + scale * packed[:-1], np.exp(2.0 * packed[-1]) * scale.max() ** 2
    lengths = np.square(frequencies).sum(axis=1)
    damped = np.exp(-2.0 * np.pi**2 * variance * lengths)
    wave = np.exp(2j * np.pi * (frequencies @ mean)) * damped
    norm = float(np.linalg.norm(damped)) + 1e-12
    product = np.conj(residual) * wave
    overlap = float(product.real.sum())
    by_mean = (2.0 * np.pi * frequencies * -product.imag[:, None]).sum(axis=0) / norm * scale
    slope = -2.0 * np.pi**2 * lengths
    by_variance = float((product.real * slope).sum()) / norm
    by_variance -= overlap * float((np.square(damped) * slope).sum()) / norm**3
    gradient = np.append(by_mean, by_variance * 2.0 * variance)
    return -overlap / norm, -gradient


def _descended(sketch: Sketch, found: _Components, low: Floats, scale: Floats, steps: int) -> _Components:
    """All components moved together to where the squared residual is smallest."""
    from scipy.optimize import minimize

    number, dim = found.means.shape
    bounds = (
        [(0.0, 2.0)] * number
        + [(0.0, 1.0)] * (number * dim)
        + [sketch.log_widths(float(scale.max()))] * number
    )
    run = minimize(
        partial(_distance, sketch=sketch, dim=dim, low=low, scale=scale),
        found.packed(low, scale),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": steps},
    )
    return _Components.unpacked(run.x, dim, low, scale)


def _distance(
    packed: Floats, *, sketch: Sketch, dim: int, low: Floats, scale: Floats
) -> tuple[float, Floats]:
    """The mean squared residual of the features, and its gradient."""
    found = _Components.unpacked(packed, dim, low, scale)
    frequencies, number = sketch.frequencies, len(sketch.waves)
    atoms = _atoms(found.means, found.variances, frequencies)
    residual = sketch.waves - found.weights @ atoms
    product = np.conj(residual) * atoms
    by_weight = -2.0 * product.real.sum(axis=1)
    by_mean = 4.0 * np.pi * found.weights[:, None] * (product.imag @ frequencies) * scale
    by_variance = (
        4.0 * np.pi**2 * found.weights[:, None] * (product.real @ np.square(frequencies).sum(axis=1)[:, None])
    )
    by_log = by_variance * 2.0 * found.variances
    gradient = np.concatenate((by_weight, by_mean.reshape(-1), by_log.reshape(-1))) / number
    return float(np.square(np.abs(residual)).sum()) / number, gradient
