"""Gaussian mixtures fitted to public cells by expectation and maximisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.tasks.cell_kmeans import cluster_cells, enough_cells
from hushsum.tasks.cells import Cells, nearest_centres

FULL, DIAGONAL, SPHERICAL = "full", "diag", "spherical"
COVARIANCE_TYPES: Final = (FULL, DIAGONAL, SPHERICAL)
_STARTS: Final = 4
_MOST_STEPS: Final = 200
_STILL: Final = 1e-6
_FLOOR: Final = 1e-4
"""The smallest variance of a component, over the mean variance of all records in a column."""
_LIGHTEST: Final = 1e-6
_POINTS_AT_A_TIME: Final = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Weights, means and covariances of normal components; public.

    ``covariances`` has the shape (n_components, dim, dim), whatever they were restricted to.

    Examples
    --------
    >>> law = Mixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> law.log_densities(np.array([[0.0]])).round(4)
    array([-0.9189])
    """

    weights: Floats
    means: Floats
    covariances: Floats

    def log_parts(self, points: Floats) -> Floats:
        """log(w_j·N(x; μ_j, Σ_j)), shape (n_points, n_components)."""
        found = np.empty((len(points), len(self.weights)))
        for j, (weight, mean, covariance) in enumerate(
            zip(self.weights, self.means, self.covariances, strict=True)
        ):
            root = np.linalg.cholesky(covariance)
            constant = math.log(max(weight, 1e-300)) - 0.5 * len(mean) * math.log(2.0 * math.pi)
            constant -= float(np.log(np.diagonal(root)).sum())
            for start in range(0, len(points), _POINTS_AT_A_TIME):
                some = points[start : start + _POINTS_AT_A_TIME] - mean
                solved = np.linalg.solve(root, some.T)
                found[start : start + len(some), j] = constant - 0.5 * np.square(solved).sum(axis=0)
        return found

    def log_densities(self, points: Floats) -> Floats:
        """The logarithm of the density at points."""
        return _log_sum(self.log_parts(points))

    def probabilities(self, points: Floats) -> Floats:
        """Of each component for each point, shape (n_points, n_components)."""
        parts = self.log_parts(points)
        return np.asarray(np.exp(parts - _log_sum(parts)[:, None]))

    def in_units(self, factor: Floats, shift: Floats) -> Mixture:
        """The law of factor·x + shift, column by column."""
        scaled = self.covariances * factor[:, None] * factor
        return Mixture(self.weights, self.means * factor + shift, scaled)

    def parameters(self, kind: str) -> int:
        """How many numbers describe it, for covariances of that type."""
        number, dim = len(self.weights), int(self.means.shape[1])
        each = {FULL: dim * (dim + 1) // 2, DIAGONAL: dim, SPHERICAL: 1}[kind]
        return number * (dim + each) + number - 1


def fit_mixture(cells: Cells, number: int, *, kind: str, seed: int) -> tuple[Mixture, float]:
    """A mixture of so many components, heaviest first, and the mean log-likelihood of a record under it.

    Expectation and maximisation on cells: a cell belongs to component j with a probability proportional to
    w_j·exp(E log N(x; μ_j, Σ_j)), over a record x with the mean and covariance of the cell; the likelihood is
    a lower bound of that of the records. It starts from k-means of the cells.

    >>> cells = Cells(np.ones(2), np.array([[0.0], [9.0]]), np.ones((2, 1)))
    >>> law, _ = fit_mixture(cells, 2, kind="full", seed=0)
    >>> sorted(law.means.ravel().round(6).tolist())
    [0.0, 9.0]
    """
    cells = enough_cells(cells, number)
    total = max(cells.total, 1e-300)
    share = np.maximum(cells.weights / total, 0.0)
    inside = cells.full_covariances()
    centre = share @ cells.means
    overall = share @ (np.square(cells.means - centre) + cells.variances)
    floor = _FLOOR * max(float(overall.mean()), 1e-12)
    nearest, _ = nearest_centres(cells.means, cluster_cells(cells, number, seed=seed, starts=_STARTS))
    belongs = np.zeros((len(cells), number))
    belongs[np.arange(len(cells)), nearest] = 1.0
    law, last = _maximised(cells, inside, share, belongs, kind, floor), -math.inf
    for _ in range(_MOST_STEPS):
        parts = _expected_log_parts(law, cells.means, inside)
        whole = _log_sum(parts)
        value = float(share @ whole)
        if value - last < _STILL * max(1.0, abs(value)):
            break
        last = value
        law = _maximised(cells, inside, share, np.exp(parts - whole[:, None]), kind, floor)
    order = np.argsort(-law.weights, kind="stable")
    return Mixture(law.weights[order], law.means[order], law.covariances[order]), last


def number_of_components(cells: Cells, most: int, *, kind: str, seed: int) -> int:
    """The number from 1 to ``most`` with the smallest Bayesian information criterion (Schwarz 1978).

    Cells are fewer than records, so the criterion takes at most half as many components as there are cells.
    Where the means of cells have noise, likelihoods count as those of so many records whose own chance would
    be as large.
    """
    best, chosen = math.inf, 1
    records = max(cells.effective_total, 2.0)
    for number in range(1, max(1, min(most, len(cells) // 2)) + 1):
        law, value = fit_mixture(cells, number, kind=kind, seed=seed)
        criterion = law.parameters(kind) * math.log(records) - 2.0 * records * value
        if criterion < best:
            best, chosen = criterion, number
    return chosen


def _expected_log_parts(law: Mixture, means: Floats, inside: Floats) -> Floats:
    found = law.log_parts(means)
    for j, covariance in enumerate(law.covariances):
        precision = np.linalg.inv(covariance)
        found[:, j] -= 0.5 * np.einsum("ij,kji->k", precision, inside)
    return found


def _maximised(
    cells: Cells, inside: Floats, share: Floats, belongs: Floats, kind: str, floor: float
) -> Mixture:
    weighted = share[:, None] * belongs
    held = np.maximum(weighted.sum(axis=0), _LIGHTEST)
    means = weighted.T @ cells.means / held[:, None]
    dim = cells.dim
    covariances = np.empty((len(held), dim, dim))
    for j, mean in enumerate(means):
        apart = cells.means - mean
        part = weighted[:, j] / held[j]
        scatter = np.tensordot(part, inside, 1) + (apart * part[:, None]).T @ apart
        covariances[j] = restricted(scatter, kind) + floor * np.eye(dim)
    return Mixture(held / held.sum(), means, covariances)


def restricted(covariance: Floats, kind: str) -> Floats:
    """A covariance of that type: as it is, its diagonal, or its mean variance in all columns."""
    if kind == FULL:
        return covariance
    variances = np.diagonal(covariance)
    if kind == SPHERICAL:
        variances = np.full(len(variances), variances.mean())
    return np.diag(variances)


def _log_sum(parts: Floats) -> Floats:
    top = parts.max(axis=1)
    return np.asarray(top + np.log(np.exp(parts - top[:, None]).sum(axis=1)))
