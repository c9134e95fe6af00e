"""README's table of skin tones is that of the committed results."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_shows_the_committed_results() -> None:
    table = (ROOT / "benchmarks/results/skin_accuracy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| (\S+) \| (\d+) \| \S+ \| ([\d.]+)% \|", table, flags=re.MULTILINE)
    measured = {(float(epsilon), float(delta)): (int(count), shown) for epsilon, delta, count, shown in rows}
    lines = re.findall(
        r"^\| ε = ([\d.]+)(, δ = 10⁻⁶)? \| (\d+) \| ([\d.]+) % \|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert len(lines) == 4
    for epsilon, delta, rows, relative in lines:
        assert measured[float(epsilon), 1e-6 if delta else 0.0] == (int(rows), relative)
