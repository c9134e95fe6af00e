"""The version, and how released files name who wrote them."""

from __future__ import annotations

__version__ = "0.1.0"
PRODUCER = f"hushsum {__version__}"
