"""The report: tables, figures and README.md from the results."""

from __future__ import annotations

from pathlib import Path


def write_report(folder: Path) -> None:
    """Nothing yet."""
