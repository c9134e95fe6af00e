"""Exact integer noise, drawn here and nowhere else.

Every sampler is a function of real uniforms whose bits come from ChaCha20 under a key used for one release.
A draw is decided only when no unseen bit and no rounding error could change it, so the probabilities are
those of the formula, tails included, and a pure ε may be claimed (against adversaries that cannot break the
cipher).
"""

from __future__ import annotations

from ._gamma_radius import gamma_radius, gamma_radius_variance
from ._poisson import (
    LARGEST_SKELLAM,
    SMALLEST_SHARED_SCALE,
    SMALLEST_SKELLAM,
    discrete_laplace_share,
    skellam,
)
from ._samplers import (
    centred_binomial,
    check_trials,
    discrete_gaussian,
    discrete_laplace,
    gaussian_variance,
    laplace_variance,
)
from ._selection import (
    EXPONENTIAL,
    MOST_RUNS,
    PERMUTE_AND_FLIP,
    Stopping,
    draw_runs,
    exponential_choice,
    exponential_distribution,
    flip,
    flip_log_odds,
    log_odds_coins,
    permute_and_flip,
    permute_and_flip_distribution,
)
from ._source import NoiseSource, independent_places, noise_was_drawn

__all__ = [
    "EXPONENTIAL", "LARGEST_SKELLAM", "MOST_RUNS", "PERMUTE_AND_FLIP", "SMALLEST_SHARED_SCALE",
    "SMALLEST_SKELLAM", "NoiseSource", "Stopping", "centred_binomial", "check_trials", "discrete_gaussian",
    "discrete_laplace", "discrete_laplace_share", "draw_runs", "exponential_choice",
    "exponential_distribution", "flip", "flip_log_odds", "gamma_radius", "gamma_radius_variance",
    "gaussian_variance", "independent_places", "laplace_variance", "log_odds_coins", "noise_was_drawn",
    "permute_and_flip", "permute_and_flip_distribution", "skellam",
]  # fmt: skip
