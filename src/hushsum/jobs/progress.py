"""How a long job reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float | None], None]
"""Called with the fraction done, or None if the length of the work is unknown."""
