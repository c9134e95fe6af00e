"""The report: README.md from the results; numbers in it are read from the JSON files and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

from papers.summarization.figures import draw
from papers.summarization.tables import (
    COMPARED,
    Results,
    groups,
    many_owners,
    missing,
    paired,
    sizes,
    standing,
    targets,
)
from papers.summarization.texts import GROUPS, INTRODUCTION, NOTES, OWNERS

SETTINGS = (("mnist", "MNIST"), ("census", "Census"))


def write_report(folder: Path) -> None:
    """Write README.md and one figure for each setting that has results."""
    parts = [INTRODUCTION]
    for name, title in SETTINGS:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        results = Results(json.loads(path.read_text(encoding="utf-8")))
        draw(results, title, folder / f"{name}.svg")
        parts.append(f"## {title}\n\n{NOTES[name]}\n\n![{title}: MMD² and accuracy by size]({name}.svg)\n")
        parts.append(missing(results))
        parts.append(targets(results, title))
        parts.append(standing(results, COMPARED))
        parts.append(paired(results))
        parts.append(sizes(results))
    for name, text, table in (("owners", OWNERS, many_owners), ("groups", GROUPS, groups)):
        path = folder / f"{name}.json"
        if path.exists():
            parts.append(text + table(json.loads(path.read_text(encoding="utf-8"))))
    (folder / "README.md").write_text("\n".join(part for part in parts if part), encoding="utf-8")
