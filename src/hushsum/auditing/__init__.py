"""Try to break a claim: search for neighbours that move too far, and for noise that hides too little."""

from hushsum.auditing.noise import NoiseAudit, audit_gaussian, audit_laplace
from hushsum.auditing.sensitivity import SensitivityAudit, audit_sensitivity

__all__ = ["NoiseAudit", "SensitivityAudit", "audit_gaussian", "audit_laplace", "audit_sensitivity"]
