"""Tests of privacy claims: neighbours whose tables differ too much, and noise that is too small."""

from hushsum.auditing._audit import Step, audit, audit_steps, basis_in_words, run_steps
from hushsum.auditing._cases import (
    MechanismCase,
    audited_bases,
    basis_cases,
    box_pool,
    mechanism_cases,
    pool_for,
    register_basis,
    register_mechanism,
)
from hushsum.auditing._report import AuditReport, AuditRow, Half, report_of
from hushsum.auditing._sensitivity import audit_sensitivity, counted, neighbours, rows_of
from hushsum.auditing._statistics import (
    Separated,
    allowed_distance,
    audit_choice,
    audit_gaussian,
    audit_laplace,
    audit_separation,
    normal_chances,
)

__all__ = [
    "AuditReport", "AuditRow", "Half", "MechanismCase", "Separated", "Step", "allowed_distance", "audit",
    "audit_choice", "audit_gaussian", "audit_laplace", "audit_sensitivity", "audit_separation", "audit_steps",
    "audited_bases", "basis_cases", "basis_in_words", "box_pool", "counted", "mechanism_cases", "neighbours",
    "normal_chances", "pool_for", "register_basis", "register_mechanism", "report_of", "rows_of", "run_steps",
]  # fmt: skip
