"""Tests of privacy claims: neighbours whose tables differ too much, and noise that is too small."""

from hushsum.auditing.audit import audit
from hushsum.auditing.choice_audit import audit_choice
from hushsum.auditing.privacy_loss_lower_bound import NoiseAudit, audit_gaussian, audit_laplace
from hushsum.auditing.report import AuditReport, AuditRow, Half
from hushsum.auditing.sensitivity import SensitivityAudit, audit_sensitivity

__all__ = [
    "AuditReport",
    "AuditRow",
    "Half",
    "NoiseAudit",
    "SensitivityAudit",
    "audit",
    "audit_choice",
    "audit_gaussian",
    "audit_laplace",
    "audit_sensitivity",
]
