"""How many points the curator sees with many owners, against the K^{1/3} of the paper."""

from __future__ import annotations

from typing import Any


def run_many_owners() -> list[dict[str, Any]]:
    """Rows for growing numbers of owners."""
    raise NotImplementedError
