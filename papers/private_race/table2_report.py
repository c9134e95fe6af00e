"""The section of DENSITIES.md on figures 3 and 7 at table 2's bandwidths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from papers.private_race.drawing import GREEN, ORANGE, PURPLE, SKY, panel_figure
from papers.private_race.table2 import ENTRANTS, MOST_COLUMNS
from papers.private_race.table2_data import DATA
from papers.private_race.table2_reduced import GRIDS
from papers.private_race.tables import markdown_table

from hushsum.plotting import BLUE, FAINT, INK, VERMILION, save_figure

YELLOW: Final = "#B8A800"
LINES: Final = {
    "auto": ("auto", BLUE, "-", "o"),
    "auto, δ": ("auto, δ = 1e-6", SKY, "--", "o"),
    "race": ("RACE (its own kernel)", INK, "-", "s"),
    "lsq_rff": ("LSQ-RFF", "#7A5195", "-", "v"),
    "bernstein": ("Bernstein", PURPLE, "-", "P"),
    "bernstein, iterated": ("Bernstein, iterated", PURPLE, "--", "P"),
    "fourier_series": ("spectral", ORANGE, "-", "D"),
    "privbayes": ("PrivBayes", FAINT, "-", "x"),
    "histogram": ("histogram", GREEN, "-", "^"),
    "kme": ("KME (δ = 1e-6)", YELLOW, "--", ">"),
    "pfda": ("PFDA (δ = 1e-6)", VERMILION, "--", "<"),
}
_PERCENT: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_COLUMNS: Final = {"nyc": 1, "sf": 1, "skin": 3, "cod_rna": 8, "covtype": 54}
_FEW = 2
"""Points of fewer releases are drawn hollow."""


def table2_section(parts: Sequence[dict[str, Any]], figures: Path) -> str:
    """Draw what there is, and say it; empty without results."""
    if not parts:
        return ""
    _draw(parts, figures / "table2.png")
    lines = [_table([part for part in parts if part["data"] == name]) for name in _names(parts)]
    versions = dict.fromkeys(part["version"] for part in parts)
    lines.append(f"{_missing(parts)}Results of this section: hushsum {', '.join(versions)}.\n")
    return "\n".join(lines)


def _missing(parts: Sequence[dict[str, Any]]) -> str:
    """Which methods have no results yet."""
    said = []
    for name, columns in _COLUMNS.items():
        forms = [each for each, entrant in ENTRANTS.items() if entrant.grid(columns) is not None]
        expected = ["race", *(GRIDS if columns > MOST_COLUMNS else forms), "auto", "auto, δ"]
        done = {part["method"] for part in parts if part["data"] == name}
        absent = [LINES[method][0] for method in expected if method not in done]
        if absent:
            said.append(f"{name}: {', '.join(absent)}")
    return (
        f"**Not measured yet** (`python -m papers.private_race` does): {'; '.join(said)}.\n\n" if said else ""
    )


def _names(parts: Sequence[dict[str, Any]]) -> list[str]:
    """The data sets that have results, in the order of the figures."""
    found = {part["data"] for part in parts}
    return [*(name for name in DATA if name in found), *sorted(found - set(DATA))]


def _table(parts: Sequence[dict[str, Any]]) -> str:
    first = parts[0]
    epsilons = sorted({cell["epsilon"] for part in parts for cell in part["cells"]})
    percent = first["measure"] == "relative"
    rows = []
    for part in sorted(parts, key=lambda each: list(LINES).index(each["method"])):
        cells = {cell["epsilon"]: cell for cell in part["cells"]}
        rows.append(
            [
                LINES[part["method"]][0],
                *(_error(cells.get(epsilon), percent) for epsilon in epsilons),
                _chosen(part),
                _releases(part),
            ]
        )
    what = "mean relative error" if percent else "root mean square error"
    head = [f"ε ({what})", *(f"{epsilon:g}" for epsilon in epsilons), "parameter", "releases"]
    floors = [part["reduced"]["exact_error"] for part in parts if "reduced" in part]
    floor = f" The reduction to three columns alone has an error of {floors[0]:.0%}." if floors else ""
    return (
        f"**{first['words']}**: {first['records']:,} records, {first['queries']:,} queries; "
        f"Gaussian bandwidth {first['gaussian_bandwidth']:g} for the hash kernel's "
        f"{first['hash_bandwidth']:g}.{floor}\n\n"
        f"{markdown_table(head, rows)}\n"
    )


def _error(cell: dict[str, Any] | None, percent: bool) -> str:
    if cell is None:
        return "–"
    text = f"{cell['error']:.1%}" if percent else f"{cell['error']:.2e}"
    marks = [] if cell.get("inside", True) else ["end"]
    marks += [] if cell["releases"] >= _FEW else ["1 release"]
    return f"{text} ({', '.join(marks)})" if marks else text


def _releases(part: dict[str, Any]) -> str:
    """How many releases a mean is over."""
    counts = [cell["releases"] for cell in part["cells"]]
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _chosen(part: dict[str, Any]) -> str:
    if part["parameter"] is None:
        return "–"
    values = [cell["value"] for cell in part["cells"]]
    tried = part["tried"]
    return f"{part['parameter']} {min(values):g} to {max(values):g}, of {tried[0]:g} to {tried[-1]:g}"


def _draw(parts: Sequence[dict[str, Any]], path: Path) -> None:
    names = _names(parts)
    columns = min(3, len(names))
    figure, axes = panel_figure(len(names), columns=columns, legend_rows=3, across=3.7)
    for one, name in zip(axes, names, strict=True):
        mine = [part for part in parts if part["data"] == name]
        for part in mine:
            label, color, style, marker = LINES[part["method"]]
            cells = part["cells"]
            x, y = [cell["epsilon"] for cell in cells], [cell["error"] for cell in cells]
            width = 2.2 if part["method"].startswith("auto") else 1.3
            one.plot(x, y, style, color=color, marker=marker, markersize=4, label=label, linewidth=width)
            thin = [(cell["epsilon"], cell["error"]) for cell in cells if cell["releases"] < _FEW]
            if thin:
                one.plot(*np.array(thin).T, marker, color=color, markerfacecolor="white", markersize=5)
        one.set_xscale("log")
        one.set_yscale("log")
        one.set_xticks([0.05, 0.1, 0.5, 1, 2], ["0.05", "0.1", "0.5", "1", "2"])
        one.minorticks_off()
        one.set_xlabel("ε", color=INK, fontsize=10)
        one.set_title(mine[0]["words"], fontsize=10, color=INK, fontweight="bold", loc="left")
        what = "L2 error of the function" if mine[0]["measure"] == "rms" else "mean relative error"
        one.set_ylabel(what, fontsize=9)
        if mine[0]["measure"] == "relative":
            low, high = one.get_ylim()
            ticks = [each for each in _PERCENT if low <= each <= high]
            one.set_yticks(ticks, [f"{100 * each:g} %" for each in ticks])
            one.minorticks_off()
    found: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="lower center", ncols=-(-len(found) // 3), frameon=False,
        fontsize=8.5, labelcolor=INK,
    )  # fmt: skip
    save_figure(figure, path)
