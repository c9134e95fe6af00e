"""The table of the validation of plans, from its JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.validation_data import TUNED_ON

Cell = dict[str, Any]
_SUMMARY = ["cells", "smallest", "one in ten below", "median", "one in ten above", "largest", "within 1.5 ×"]

_OPENING = """\
# Plans against measured errors

Measured over planned mean absolute error of f(q)/N at queries from the data. Each data set is left out of the
fit of the two constants that its own plan uses (the box in standard deviations, and the power of the number
of columns along which records vary), as are data sets of the same source. Variants: as it is, rounded to two
significant digits, a tenth of the records set to one value. Hash rows are planned from a public sample of a
hundredth of the records, 500 at least.

The other constants of plans (the share of records that counts as a heap on a grid, the chance of features,
the factors of landmarks) were fitted to one half of the data sets, the *tuning half*; the others are the
*testing half*.

Plans may count for 1 s, which leaves out landmarks. These are planned and released by name, chosen or not, in
5 to 20 columns, with at most 6,000 records; the power of their columns was chosen with all data sets in view.
"""


def write_report(results: dict[str, Any], folder: Path, *, every: int) -> Path:
    """Write ``plan_validation.md``; ``every`` is how many cells a complete run has."""
    cells = results["cells"]
    versions = Counter(
        f"{each['number']}, commit {each['commit']}, sources {each['digest']}, {each['day']}"
        for each in (cell["version"] for cell in cells)
    )
    made_by = "; ".join(f"{number} cells by version {version}" for version, number in versions.items())
    parts = [
        _OPENING,
        f"Made by `python -m benchmarks.plan_validation`: {len(cells)} of {every} cells; {made_by}.\n",
        "## By method, testing half\n",
        _by_method([cell for cell in cells if cell["group"] not in TUNED_ON]),
        "## By method, tuning half\n",
        _by_method([cell for cell in cells if cell["group"] in TUNED_ON]),
        "## By method, all\n",
        _by_method(cells),
        "## By data set, declared quantities\n",
        _by_data([cell for cell in cells if cell["kind"] == "declared"]),
        "## Cells beyond 1.5 ×\n",
        _beyond(cells),
        "## Densities\n",
        _densities(cells),
    ]
    file = folder / "plan_validation.md"
    file.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return file


def ratio(cell: Cell) -> float:
    """Measured over planned."""
    return float(cell["measured"] / cell["planned"])


def _by_method(cells: Sequence[Cell]) -> str:
    groups: dict[str, list[float]] = {}
    for cell in cells:
        kind = "hash rows, public sample" if cell["kind"] == "public sample" else cell["method"]
        groups.setdefault(f"{kind}, {'δ' if cell['delta'] else 'pure ε'}", []).append(ratio(cell))
    groups = dict(sorted(groups.items()))
    groups["all choices from declared quantities"] = [
        ratio(each) for each in cells if each["kind"] == "declared"
    ]
    head = [
        "what",
        "cells",
        "smallest",
        "one in ten below",
        "median",
        "one in ten above",
        "largest",
        "within 1.5 ×",
    ]
    return _markdown(head, [[name, *_summary(values)] for name, values in groups.items() if values])


def _by_data(cells: Sequence[Cell]) -> str:
    names = list(dict.fromkeys(cell["data"] for cell in cells))
    rows = []
    for name in names:
        own = [cell for cell in cells if cell["data"] == name]
        methods = ", ".join(sorted({cell["method"] for cell in own}))
        shape = f"{own[0]['records']:,} × {own[0]['columns']}"
        rows.append([name, shape, methods, *_summary([ratio(cell) for cell in own])])
    return _markdown(["data", "size", "methods", *_SUMMARY], rows)


def _summary(values: Sequence[float]) -> list[str]:
    ordered = sorted(values)

    def at(part: float) -> str:
        return f"{ordered[min(len(ordered) - 1, int(part * len(ordered)))]:.2f}"

    near = sum(1 / 1.5 <= each <= 1.5 for each in ordered)
    return [
        str(len(ordered)),
        f"{ordered[0]:.2f}",
        at(0.1),
        at(0.5),
        at(0.9),
        f"{ordered[-1]:.2f}",
        f"{near / len(ordered):.0%}",
    ]


def _beyond(cells: Sequence[Cell]) -> str:
    far = sorted((cell for cell in cells if not 1 / 1.5 <= ratio(cell) <= 1.5), key=ratio)
    if not far:
        return "None.\n"
    rows = [
        [
            cell["name"],
            cell["method"],
            f"{cell['planned']:.2e}",
            f"{cell['measured']:.2e}",
            f"{ratio(cell):.2f}",
            f"{cell['density']:.3g}",
        ]
        for cell in far
    ]
    return _markdown(["cell", "method", "planned", "measured", "ratio", "density"], rows)


def _densities(cells: Sequence[Cell]) -> str:
    """How far the guessed density is from the true one, and what was fitted."""
    declared = [cell for cell in cells if cell["kind"] == "declared"]
    if not declared:
        return ""
    away = [cell["density"] / cell["planned_density"] for cell in declared]
    box, power = zip(*(cell["constants"] for cell in declared), strict=True)
    return (
        f"The constants that were fitted without a data set: a box of {min(box):.1f} to {max(box):.1f}\n"
        f"deviations (shipped: 6), and a power of {min(power):.2f} to {max(power):.2f} (shipped: 0.27).\n"
        "True over predicted density:\n\n" + _markdown(_SUMMARY, [_summary(away)])
    )


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
