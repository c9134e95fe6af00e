"""Audits of the library by auditors that others wrote; see docs/explanation/audits.md."""
