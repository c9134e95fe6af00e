"""README shows the committed errors, and compares ``auto`` with the best method as the results do."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = {
    "salaries of New York": "nyc",
    "skin tones": "skin",
    "pulsars": "pulsar_4",
    "room occupancy": "occupancy",
    "RNA": "cod_rna",
}


def test_the_table_shows_the_committed_errors() -> None:
    table = (ROOT / "benchmarks/results/comparison.md").read_text(encoding="utf-8")
    rows = r"^### (\w+): .*?^\| \*\*auto\*\* \| (\S+) \| (\S+) \| \S+ \| (\S+) \|"
    measured = {name: shown for name, *shown in re.findall(rows, table, flags=re.MULTILINE | re.DOTALL)}
    lines = re.findall(
        r"^\| ([^|,]+), [\d,]+ × \d \| [\d.]+ \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert [name for name, *_ in lines] == list(DATA)
    for name, *shown in lines:
        assert shown == [f"{Decimal(each):f}" for each in measured[DATA[name]]], name


def test_the_text_tells_how_often_auto_is_near_the_best() -> None:
    table = (ROOT / "benchmarks/results/comparison.md").read_text(encoding="utf-8")
    found = re.search(r"everywhere \|[^|]+\| at most [^,]+,[^,]+,[^,]+, above 1\.2 in (\d+) of (\d+)", table)
    near = re.search(r"within 10 % of the best \|[^|]+\| in (\d+) of (\d+)", table)
    assert found is not None
    assert near is not None
    above, cells = (int(each) for each in found.groups())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"The comparison has {cells} cases" in readme
    assert f"In {near[1]} of the {cells} cases the error of `hs.release` is at most 1.1 times" in readme
    assert f"and in {cells - above} it is at most 1.2 times" in readme
