"""Tests of privacy claims: neighbours whose tables differ too much, and noise that is too small."""

from ._audit import (
    Step,
    audit,
    audit_calibration,
    audit_steps,
    basis_in_words,
    noise_steps,
    run_steps,
    smoke_steps,
)
from ._cases import (
    MechanismCase,
    NoiseCase,
    audited_bases,
    audited_kernels,
    basis_cases,
    box_pool,
    mechanism_cases,
    noise_cases,
    pool_for,
    register_basis,
    register_mechanism,
)
from ._report import STATED_POWER, AuditReport, AuditRow, Half, report_of
from ._sensitivity import (
    SensitivityAudit,
    audit_edges,
    audit_persons,
    audit_sensitivity,
    counted,
    neighbours,
    rows_of,
)
from ._statistics import (
    Separated,
    allowed_distance,
    audit_choice,
    audit_gaussian,
    audit_laplace,
    audit_separation,
    normal_chances,
)

__all__ = [
    "STATED_POWER", "AuditReport", "AuditRow", "Half", "MechanismCase", "NoiseCase", "SensitivityAudit",
    "Separated", "Step", "allowed_distance", "audit", "audit_calibration", "audit_choice", "audit_edges",
    "audit_gaussian", "audit_laplace", "audit_persons", "audit_sensitivity", "audit_separation",
    "audit_steps", "audited_bases", "audited_kernels", "basis_cases", "basis_in_words", "box_pool", "counted",
    "mechanism_cases", "neighbours", "noise_cases", "noise_steps", "normal_chances", "pool_for",
    "register_basis", "register_mechanism", "report_of", "rows_of", "run_steps", "smoke_steps",
]  # fmt: skip
