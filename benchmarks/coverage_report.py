"""The tables of ``benchmarks.coverage``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.coverage_data import HEAPS, HELD_OUT, ONE, PLAIN, SOURCES, TUNING

Cell = dict[str, Any]
_LOWEST, _HIGHEST, _WORST = 0.93, 0.98, 0.85

_HEAD = """# Coverage of 95 % intervals

`HUSHSUM_DATA=… python -m benchmarks.coverage`. Each cell is one method on one data set, heaped in one way,
at one ε: 40 releases with their own noise and public seeds, 150 queries drawn from the data and 50 drawn
from the declared box. At most 20,000 records. The data sets are in two halves: what was changed in the
library was tried on the *tuning* half only.

Numbers are means over cells of how many intervals hold; in brackets the lowest and the highest cell. *In
range* are cells with 0.93 to 0.98. *Worst* is the median over cells of the worst of the first 10 releases,
and how many cells have none below 0.85; *exact* the same for intervals that are right by construction (1.96
root mean square errors of each query over the same releases): errors of queries near each other are one
error, so that releases with many misses are unavoidable. *Fixed* are the queries from the box. *Climbed*
are queries found by climbing on the released function, for which intervals are not meant.

Every cell has seeds of noise of its own. Where the error of the number of records dominates, as in one column
at ε = 1, a cell has forty errors in all, so single cells deviate from their true coverage by some hundredths.
"""


def _cover(cells: list[Cell], name: str = "mean") -> str:
    values = [cell[name] for cell in cells]
    if not values:
        return ""
    return f"{sum(values) / len(values):.3f} ({min(values):.2f}–{max(values):.2f})"


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def _row(label: list[str], cells: list[Cell]) -> str:
    stated = [cell for cell in cells if cell["states"]]
    if not stated:
        return "| " + " | ".join([*label, str(len(cells)), "states no interval", *[""] * 6]) + " |"
    climbed = [cell["climbed"] for cell in stated if cell["climbed"] is not None]
    good = sum(_LOWEST <= cell["mean"] <= _HIGHEST for cell in stated)
    worst = sum(cell["worst"] >= _WORST for cell in stated)
    exact = sum(cell["exact_worst"] >= _WORST for cell in stated)
    number = len(stated)
    return "| " + " | ".join([
        *label, str(number), _cover(stated), f"{good}/{number}",
        f"{_median(cell['worst'] for cell in stated):.2f}, {worst}/{number}",
        f"{_median(cell['exact_worst'] for cell in stated):.2f}, {exact}/{number}",
        _cover(stated, "fixed_mean"), f"{sum(climbed) / len(climbed):.2f}" if climbed else "",
        f"{_median(cell['stderr_over_rms'] for cell in stated):.2f}",
    ]) + " |"  # fmt: skip


def _table(title: str, keys: tuple[str, ...], names: tuple[str, ...], cells: list[Cell]) -> list[str]:
    head = [
        *names,
        "cells",
        "holds",
        "in range",
        "worst, ≥ 0.85",
        "exact, ≥ 0.85",
        "fixed",
        "climbed",
        "stderr/rms",
    ]
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[key] for key in keys), []).append(cell)
    lines += [_row([str(part) for part in group], found) for group, found in groups.items()]
    return [*lines, ""]


def _bands(cells: list[Cell]) -> list[str]:
    """How often the simultaneous intervals of a release hold at all queries."""
    lines = [
        "## Simultaneous intervals",
        "",
        "The share of 20 releases whose simultaneous 95 % intervals hold at all 150 queries from the data:",
        "its standard error is 0.05 per cell.",
        "",
        "| method | ε | data sets | all hold, mean | lowest |",
        "|---|---|---|---|---|",
    ]
    for method, epsilon in dict.fromkeys((cell["method"], cell["epsilon"]) for cell in cells):
        found = [cell["together"] for cell in cells if (cell["method"], cell["epsilon"]) == (method, epsilon)]
        mean = sum(found) / len(found)
        lines.append(f"| {method} | {epsilon:g} | {len(found)} | {mean:.3f} | {min(found):.2f} |")
    return [*lines, ""] if cells else []


def write_report(cells: dict[str, Cell], path: Path) -> None:
    """Write the tables of the cells that were measured."""
    every = list(cells.values())
    order = {name: place for place, name in enumerate(HEAPS)}
    every.sort(key=lambda cell: order[cell["heap"]])
    spread = [cell for cell in every if cell["heap"] != ONE]
    lines = [_HEAD]
    names = sorted({cell["method"] for cell in every})
    by_method = sorted(spread, key=lambda cell: (names.index(cell["method"]), cell["half"] != TUNING))
    lines += _table(
        "By method and half, without *one value*", ("method", "half"), ("method", "half"), by_method
    )
    by_dim = sorted(spread, key=lambda cell: (names.index(cell["method"]), cell["dim"], cell["epsilon"]))
    keys = ("method", "dim", "epsilon")
    lines += _table("By method, columns and ε, without *one value*", keys, ("method", "columns", "ε"), by_dim)
    by_heap = sorted(every, key=lambda cell: (names.index(cell["method"]), order[cell["heap"]]))
    lines += _table("By method and heaping", ("method", "heap"), ("method", "heaping"), by_heap)
    lines += _bands([cell for cell in every if "together" in cell])
    lines += [
        "With *one value* all queries from the data are one query: a release holds or misses all of them,",
        "so that the worst release is 0 unless none misses, and means are steps of a tenth.",
        "",
        "## Every cell",
        "",
        "| method | data | half | heaping | ε | holds | worst | exact | fixed | stderr/rms |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in by_heap:
        if cell["states"]:
            lines.append(
                f"| {cell['method']} | {cell['data']} | {cell['half']} | {cell['heap']} | "
                f"{cell['epsilon']:g} | {cell['mean']:.3f} | {cell['worst']:.2f} | "
                f"{cell['exact_worst']:.2f} | "
                f"{cell['fixed_mean']:.3f} | {cell['stderr_over_rms']:.2f} |"
            )
    halves = {half: [each.name for each in SOURCES if each.half == half] for half in (TUNING, HELD_OUT)}
    lines += ["", *(f"*{half.capitalize()}*: {', '.join(found)}." for half, found in halves.items())]
    lines += ["", f"*{PLAIN.capitalize()}* is the data without heaping added."]
    commits = Counter(cell.get("commit", "earlier ones") for cell in every)
    lines += [
        "",
        "Commits: " + ", ".join(f"{name} ({number} cells)" for name, number in commits.items()) + ".",
    ]
    path.write_text("\n".join(lines) + "\n")
