"""How long work tells how far it has come."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float | None], None]
"""Told the fraction done, or None where the length of the work is unknown."""
