"""Exact integer noise, drawn here and nowhere else.

Every sampler is a function of real uniforms whose bits come from ChaCha20 under a key used for one release.
A draw is decided only when no unseen bit and no rounding error could change it, so the probabilities are
those of the formula, tails included, and a pure ε may be claimed (against adversaries that cannot break the
cipher).
"""

from __future__ import annotations

from hushsum.privacy.noise.binomial_sampler import centred_binomial, check_trials
from hushsum.privacy.noise.discrete_gaussian_sampler import discrete_gaussian, gaussian_variance
from hushsum.privacy.noise.discrete_laplace_sampler import discrete_laplace, laplace_variance
from hushsum.privacy.noise.gamma_radius_sampler import gamma_radius, gamma_radius_variance
from hushsum.privacy.noise.laplace_share_sampler import discrete_laplace_share
from hushsum.privacy.noise.skellam_sampler import skellam
from hushsum.privacy.noise.source import NoiseSource, noise_was_drawn

__all__ = [
    "NoiseSource",
    "centred_binomial",
    "check_trials",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_laplace_share",
    "gamma_radius",
    "gamma_radius_variance",
    "gaussian_variance",
    "laplace_variance",
    "noise_was_drawn",
    "skellam",
]
