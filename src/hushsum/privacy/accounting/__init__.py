"""From a claim to exact noise scales: what (ε, δ) or ρ a noise keeps, and the least noise that keeps it.

``gaussian`` calibrates real numbers, ``discrete_gaussian`` integer tables that move by units, ``vectors``
integer tables that move by vectors, ``zcdp`` the rest; ``conversions``
moves claims between relations and groups.
"""

from hushsum.privacy.accounting.continuous_gaussian import (
    analytic_gaussian_sigma,
    gaussian_delta,
    gaussian_delta_above,
)
from hushsum.privacy.accounting.conversions import (
    convert_delta,
    convert_epsilon,
    convert_rho,
    group_delta,
    group_epsilon,
    group_rho,
    relation_steps,
)
from hushsum.privacy.accounting.discrete_gaussian import (
    GaussianVariances,
    discrete_gaussian_delta,
    gaussian_variances,
)
from hushsum.privacy.accounting.discrete_gaussian_vectors import vector_delta, vector_variances
from hushsum.privacy.accounting.parameters import check_delta
from hushsum.privacy.accounting.zcdp import zcdp_delta, zcdp_epsilon, zcdp_rho

__all__ = [
    "GaussianVariances",
    "analytic_gaussian_sigma",
    "check_delta",
    "convert_delta",
    "convert_epsilon",
    "convert_rho",
    "discrete_gaussian_delta",
    "gaussian_delta",
    "gaussian_delta_above",
    "gaussian_variances",
    "group_delta",
    "group_epsilon",
    "group_rho",
    "relation_steps",
    "vector_delta",
    "vector_variances",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]
