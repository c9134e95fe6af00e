"""Fixtures for methods."""

from tests.draw_record import record

__all__ = ["record"]
