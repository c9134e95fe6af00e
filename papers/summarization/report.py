"""The report: numbers and tables of README.md, from the results alone."""

from __future__ import annotations

import json
from pathlib import Path

from papers.pages import fill_page
from papers.summarization.figures import draw
from papers.summarization.protocol import protocol
from papers.summarization.published import PublishedParameters
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

SETTINGS = (("mnist", "MNIST"), ("mnist_paper", "MNIST, γ = 0.1"), ("census", "Census"))


def write_report(folder: Path) -> Path:
    """Fill in the page, and draw one figure for each setting that has results; returns the page."""
    summary, validation = PublishedParameters().composed(COMPARED)
    parts = {"summary": f"{summary:.3f}", "validation": f"{validation:.2f}", "theorems": theorem_needs()}
    for name, title in SETTINGS:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        results = Results(json.loads(path.read_text(encoding="utf-8")))
        draw(results, title, folder / f"{name}.svg")
        beside = folder / "references.json"
        if name == "mnist_paper" and beside.exists():
            rows = json.loads(beside.read_text(encoding="utf-8"))
            parts["references"] = references(rows, results)
        compared = COMPARED if COMPARED in results.sizes else results.sizes[-1]
        tables = [missing(results), targets(results, title), standing(results, compared)]
        tables += [paired(results), sizes(results)]
        parts[name] = "\n".join(filter(None, tables))
    for name, table in (("owners", many_owners), ("groups", groups), ("protocol", protocol)):
        path = folder / f"{name}.json"
        if path.exists():
            parts[name] = table(json.loads(path.read_text(encoding="utf-8")))
    return fill_page(Path(__file__).parent / "README.md", parts, folder)
