"""From a claim to exact noise scales: what (ε, δ) or ρ a noise keeps, and the least noise that keeps it.

- ``_parameters``: checks of ε, δ and ρ, conversions between them, and the claims of groups
- ``_gaussian``: normal and discrete Gaussian noise, on tables that move by units or by vectors, and in shares
- ``_gamma_radius``: one vector whose length has a Gamma distribution
- ``_loss_moments``: binomial and Skellam noise
- ``_composition``: lists of releases that are fixed beforehand
- ``_shuffling``: local reports that are shuffled
"""

from ._composition import GaussianTable, LaplaceTable, compose, noise_allowed
from ._gamma_radius import MOST_CELLS, gamma_radius_delta, gamma_radius_scale
from ._gaussian import (
    SMALLEST_SHARE,
    DiscreteGaussian,
    analytic_gaussian_sigma,
    discrete_gaussian_delta,
    gaussian_delta,
    gaussian_delta_above,
    gaussian_variances,
    promise_for_sum,
    rho_of_sum,
    rounding_gap,
    short_above,
    sum_distance,
    vector_delta,
    vector_variances,
)
from ._loss_moments import binomial_delta, binomial_trials, skellam_delta, skellam_rho, skellam_variances
from ._parameters import (
    at_least_one,
    check_delta,
    declared_population,
    float_above,
    float_below,
    group_delta,
    group_epsilon,
    group_rho,
    promise_of_one,
    proper_share,
    relation_steps,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from ._shuffling import local_epsilon_for, shuffled_delta, shuffled_epsilon

__all__ = [
    "MOST_CELLS", "SMALLEST_SHARE", "DiscreteGaussian", "GaussianTable", "LaplaceTable",
    "analytic_gaussian_sigma", "at_least_one", "binomial_delta", "binomial_trials", "check_delta",
    "compose", "declared_population", "discrete_gaussian_delta", "float_above", "float_below",
    "gamma_radius_delta", "gamma_radius_scale", "gaussian_delta", "gaussian_delta_above",
    "gaussian_variances", "group_delta", "group_epsilon", "group_rho", "local_epsilon_for", "noise_allowed",
    "promise_for_sum", "promise_of_one", "proper_share", "relation_steps", "rho_of_sum", "rounding_gap",
    "short_above", "shuffled_delta", "shuffled_epsilon", "skellam_delta", "skellam_rho",
    "skellam_variances", "sum_distance", "vector_delta", "vector_variances", "zcdp_delta", "zcdp_epsilon",
    "zcdp_rho",
]  # fmt: skip
