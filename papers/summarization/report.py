"""The report: README.md from the results; numbers in it are read from the JSON files and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

from papers.data import marked
from papers.summarization.figures import draw
from papers.summarization.tables import (
    COMPARED,
    Results,
    groups,
    many_owners,
    missing,
    paired,
    references,
    sizes,
    standing,
    targets,
    theorem_needs,
)
from papers.summarization.texts import (
    GROUPS,
    INTRODUCTION,
    NOTES,
    OWNERS,
    REFERENCES,
    REFERENCES_READ,
    THEOREMS,
)

from hushsum.summarize.published_auction import PublishedParameters

SETTINGS = (("mnist", "MNIST"), ("mnist_paper", "MNIST, γ = 0.1"), ("census", "Census"))


def write_report(folder: Path) -> Path:
    """Write README.md and one figure for each setting that has results; returns the page."""
    summary, validation = PublishedParameters().composed(COMPARED)
    parts = [INTRODUCTION.format(summary=f"{summary:.3f}", validation=f"{validation:.2f}")]
    for name, title in SETTINGS:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        results = Results(json.loads(path.read_text(encoding="utf-8")))
        draw(results, title, folder / f"{name}.svg")
        parts.append(f"## {title}\n\n{NOTES[name]}\n\n![{title}: MMD² and accuracy by size]({name}.svg)\n")
        beside = folder / "references.json"
        if name == "mnist_paper" and beside.exists():
            rows = json.loads(beside.read_text(encoding="utf-8"))
            parts.append(f"{REFERENCES}{references(rows, results)}\n{REFERENCES_READ}")
        parts.append(missing(results))
        parts.append(targets(results, title))
        compared = COMPARED if COMPARED in results.sizes else results.sizes[-1]
        parts.append(standing(results, compared))
        parts.append(paired(results))
        parts.append(sizes(results))
    for name, text, table in (("owners", OWNERS, many_owners), ("groups", GROUPS, groups)):
        path = folder / f"{name}.json"
        if path.exists():
            parts.append(text + table(json.loads(path.read_text(encoding="utf-8"))))
    parts.append(THEOREMS + theorem_needs())
    page = folder / "README.md"
    page.write_text(marked("\n".join(part for part in parts if part)), encoding="utf-8")
    return page
