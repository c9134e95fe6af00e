"""Tests of privacy claims: neighbours whose tables differ too much, and noise that is too small."""

from hushsum.auditing._audit import (
    Step,
    audit,
    audit_calibration,
    audit_steps,
    basis_in_words,
    noise_steps,
    run_steps,
    smoke_steps,
)
from hushsum.auditing._noise import (
    LESS_NOISE,
    Distributions,
    Events,
    GaussianPair,
    NoiseAudit,
    Term,
    at_most,
    audit_choice,
    audit_gaussian,
    audit_laplace,
    binomial_bounds,
    distribution_of,
    laplace_draws,
    laplace_power,
    lower_bounds,
    most_hits_below,
    one_direction_power,
)
from hushsum.auditing._noise_cases import NoiseCase, noise_cases
from hushsum.auditing._registry import (
    MechanismCase,
    audited_bases,
    audited_kernels,
    basis_cases,
    mechanism_cases,
    pool_for,
    register_basis,
    register_mechanism,
)
from hushsum.auditing._report import STATED_POWER, AuditReport, AuditRow, Half, report_of
from hushsum.auditing._sensitivity import (
    SensitivityAudit,
    audit_edges,
    audit_persons,
    audit_sensitivity,
    counted,
    neighbours,
    rows_of,
)
from hushsum.auditing._smoke import (
    CASES,
    HALF_NOISE,
    INFORMATIVE,
    THOROUGH_RELEASES,
    Separated,
    SmokeCase,
    allowed_distance,
    audit_separation,
    audit_smoke,
    lattice_chances,
    normal_chances,
    separation_power,
)
from hushsum.auditing._table_cases import box_pool

__all__ = [
    "CASES", "HALF_NOISE", "INFORMATIVE", "LESS_NOISE", "STATED_POWER", "THOROUGH_RELEASES", "AuditReport",
    "AuditRow", "Distributions", "Events", "GaussianPair", "Half", "MechanismCase", "NoiseAudit", "NoiseCase",
    "SensitivityAudit", "Separated", "SmokeCase", "Step", "Term", "allowed_distance", "at_most", "audit",
    "audit_calibration", "audit_choice", "audit_edges", "audit_gaussian", "audit_laplace", "audit_persons",
    "audit_sensitivity", "audit_separation", "audit_smoke", "audit_steps", "audited_bases", "audited_kernels",
    "basis_cases", "basis_in_words", "binomial_bounds", "box_pool", "counted", "distribution_of",
    "laplace_draws", "laplace_power", "lattice_chances", "lower_bounds", "mechanism_cases", "most_hits_below",
    "neighbours", "noise_cases", "noise_steps", "normal_chances", "one_direction_power", "pool_for",
    "register_basis", "register_mechanism", "report_of", "rows_of", "run_steps", "separation_power",
    "smoke_steps",
]  # fmt: skip
