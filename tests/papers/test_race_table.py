"""README's table of the race, and what it says of ``auto``, are those of the committed results."""

from __future__ import annotations

import json
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
    document = json.loads((ROOT / "benchmarks/results/accuracy.json").read_text(encoding="utf-8"))
    measured = {
        (cell["data"], cell["epsilon"], cell["delta"]): cell["error"]
        for cell in document["cells"]
        if cell["method"] == "auto" and cell["note"] != "own kernel"
    }
    lines = re.findall(
        r"^\| ([^|,]+), [\d,]+ × \d \| [\d.]+ \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert [name for name, *_ in lines] == list(DATA)
    for name, *shown in lines:
        promises = (0.1, 0.0), (1.0, 0.0), (1.0, 1e-6)
        expected = [f"{Decimal(f'{measured[DATA[name], *each]:.1e}'):f}" for each in promises]
        assert shown == expected, name


def test_the_text_tells_how_often_auto_is_near_the_best() -> None:
    table = (ROOT / "benchmarks/results/accuracy.md").read_text(encoding="utf-8")
    found = re.search(r"everywhere \|[^|]+\| at most [^,]+,[^,]+,[^,]+, above 1\.2 in (\d+) of (\d+)", table)
    near = re.search(r"within 10 % of the best \|[^|]+\| in (\d+) of (\d+)", table)
    assert found is not None
    assert near is not None
    above, cells = (int(each) for each in found.groups())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"In {cells - above} of the {cells} cells of that comparison" in readme
    assert f"and in {near[1]} at most 1.1 times" in readme
