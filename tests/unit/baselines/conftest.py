"""Fixtures for published methods."""

from tests.recorded_draws import record

__all__ = ["record"]
