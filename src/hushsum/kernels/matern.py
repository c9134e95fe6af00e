"""The Matérn kernels: of a chosen smoothness, rougher than the Gaussian kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError, shown
from hushsum.kernels.base import Batch, ProfileKernel, SpectralKernel
from hushsum.kernels.parameters import check_parameters
from hushsum.kernels.product_profiles import Profile, fitted_profiles
from hushsum.kernels.public_randomness import ONE_TURN, in_turns, normal_directions
from hushsum.kernels.registry import register
from hushsum.kernels.structured_randomness import normal_lengths
from hushsum.records.native_batch import distances

SMOOTHNESS = (0.5, 1.5, 2.5)


@register
@dataclass(frozen=True, slots=True)
class MaternKernel(SpectralKernel, ProfileKernel):
    """The Matérn kernel of smoothness ν, in r = ‖x − q‖/bandwidth:

    ``exp(−r)`` for ν = 1/2, ``(1 + √3·r)·exp(−√3·r)`` for 3/2 and ``(1 + √5·r + 5r²/3)·exp(−√5·r)`` for 5/2.
    Paths of a Gaussian process with this covariance have ⌈ν⌉ − 1 derivatives. It is not the collision
    probability of the hash families here: hash rows refuse it.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The length scale, in the units of the data.
    smoothness : {0.5, 1.5, 2.5}
        ν.

    Examples
    --------
    >>> MaternKernel(dim=1, bandwidth=2.0).similarity([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.4834]])

    Notes
    -----
    Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, equation 4.16. The spectral
    measure is a multivariate Student law with 2ν degrees of freedom: a normal vector over the root of an
    independent χ² number divided by 2ν.
    """

    name: ClassVar[str] = "matern"
    positive_definite: ClassVar[bool] = True
    rotation_invariant: ClassVar[bool] = True

    dim: int
    bandwidth: float
    smoothness: float = 1.5

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.smoothness not in SMOOTHNESS:
            raise UsageError(
                parameter="smoothness",
                rule="must be 0.5, 1.5 or 2.5",
                got=shown(self.smoothness),
                remedy="choose one, or the gaussian kernel for smoother functions",
            )
        object.__setattr__(self, "smoothness", float(self.smoothness))

    @property
    def width(self) -> float:
        """The bandwidth: there is no power."""
        return self.bandwidth

    @property
    def smooth(self) -> bool:
        """No: only the roughest has a corner at its peak, but the others have one in a derivative."""
        return False

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Gaussians: the kernel is one with a random variance."""
        return fitted_profiles(self, spacings=spacings, diameter=math.hypot(*sides), gaussian=True)

    def integral(self) -> float:
        """The integral over all space: (2π)^d times the spectral density at zero."""
        half, nu = self.dim / 2.0, self.smoothness
        log = half * math.log(2.0 * math.pi / nu) + math.lgamma(nu + half) - math.lgamma(nu)
        return math.exp(log + self.dim * math.log(self.bandwidth))

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Student vectors, in turns. Their directions may be orthogonal: lengths are drawn apart."""
        directions = normal_directions("matern/frequencies", seed, rows, self.dim, orthogonal=orthogonal)
        directions /= self._spreads(rows, seed)[:, np.newaxis]
        return in_turns(directions, 1.0 / self.bandwidth)

    def frequency_lengths(self, *, rows: int, seed: int, size: int) -> NDArray[np.float64] | None:
        """Lengths of Student vectors, in turns."""
        lengths = normal_lengths("matern/lengths", seed, rows, size) / self._spreads(rows, seed)
        return lengths * (1.0 / self.bandwidth / ONE_TURN)

    def _spreads(self, rows: int, seed: int) -> Floats:
        """Roots of chi-squared numbers over their degrees of freedom, which divide normal vectors."""
        degrees = round(2.0 * self.smoothness)
        spreads = normal_directions("matern/spreads", seed, rows, degrees, orthogonal=False)
        squares = np.zeros(rows)
        for column in range(degrees):
            squares += spreads[:, column] * spreads[:, column]
        return np.sqrt(squares / degrees)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries)
        r = math.sqrt(2.0 * self.smoothness) / self.bandwidth * distance
        factor = {0.5: 1.0, 1.5: 1.0 + r, 2.5: 1.0 + r + r * r / 3.0}[self.smoothness]
        result: Floats = factor * np.exp(-r)
        return result
