"""The section of DENSITIES.md on figure 3 with all methods on one kernel, and what section 8 says of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from papers.private_race.drawing import GREEN, ORANGE, PURPLE, SKY, panel_figure
from papers.private_race.figure3 import CONTESTANTS, PAPER, TUNED
from papers.private_race.tables import markdown_table

from hushsum.plotting import BLUE, FAINT, INK, VERMILION, save_figure

COLORS: Final = {
    "RACE": INK,
    "Bernstein": PURPLE,
    "spectral": ORANGE,
    "PFDA": VERMILION,
    "KME": "#B8A800",
    "PrivBayes": FAINT,
    "histogram": GREEN,
    "trigonometric": SKY,
    "auto": BLUE,
}
TITLES: Final = {"nyc": "NYC salaries", "sf": "SF salaries"}
_LITTLE = 2.0
"""A factor between the best and the worst number of rows that does not matter."""

Part = dict[str, Any]


def one_kernel_section(parts: Sequence[Part], figures: Path) -> str:
    """Draw what there is, and say it."""
    _draw(parts, figures / "figure3_one_kernel.png")
    names = [name for name in TITLES if any(part["data"] == name for part in parts)]
    tables = [_table(name, [part for part in parts if part["data"] == name]) for name in names]
    sources = ", ".join(dict.fromkeys(part["version"] for part in parts))
    done = {(part["data"], part["method"], part["settings"]) for part in parts}
    absent = [
        f"{TITLES[name]}: {method}, {settings}"
        for name in TITLES
        for method, each in CONTESTANTS.items()
        for settings, grid in ((PAPER, each.paper), (TUNED, each.tuned))
        if grid is not None and (name, method, settings) not in done
    ]
    if absent:
        sources += f". **Not measured yet**, `python -m papers.private_race` does: {'; '.join(absent)}"
    said = markdown_table(["section 8 says", "verdict", "found"], _verdicts(parts))
    return "\n".join([*tables, said.replace("---:", "---"), "", f"Results: hushsum {sources}.\n"])


def _table(name: str, parts: Sequence[Part]) -> str:
    epsilons = [each["epsilon"] for each in parts[0]["cells"]]
    rows = []
    for part in parts:
        smooth = CONTESTANTS[part["method"]].smooth
        values = [each["value"] for each in part["cells"] if "value" in each]
        chosen = f"{part['parameter']} {min(values):g} to {max(values):g}" if values else "–"
        delta = part["cells"][0]["delta"]
        rows.append(
            [
                f"{part['method']}{' †' if smooth else ''}, {part['settings']}",
                *(f"{each['error']:.1e} ± {each['stderr'] or 0.0:.0e}" for each in part["cells"]),
                chosen + (f", δ = {delta:g}" if delta else ""),
            ]
        )
    head = ["L2 error at ε =", *(f"{epsilon:g}" for epsilon in epsilons), "settings"]
    releases = parts[0]["cells"][0]["releases"]
    return f"**{TITLES[name]}**, {releases} releases\n\n{markdown_table(head, rows)}\n"


def _errors(parts: Sequence[Part], name: str, method: str, settings: str) -> dict[float, float]:
    for part in parts:
        if (part["data"], part["method"], part["settings"]) == (name, method, settings):
            return {each["epsilon"]: each["error"] for each in part["cells"]}
    return {}


def _verdicts(parts: Sequence[Part]) -> list[list[str]]:
    rows = []
    for name, first, second, says in (
        ("sf", "Bernstein", "RACE", "“the Bernstein mechanism outperforms RACE on the SF dataset”"),
        ("nyc", "RACE", "Bernstein", "“but fails to capture the nuances of the NYC salary distribution”"),
    ):
        for settings in (PAPER, TUNED):
            mine, theirs = (_errors(parts, name, each, settings) for each in (first, second))
            if not mine or not theirs:
                continue
            better = [epsilon for epsilon in mine if mine[epsilon] < theirs[epsilon]]
            verdict = "holds" if len(better) == len(mine) else "in part" if better else "**no**"
            places = ", ".join(f"{epsilon:g}" for epsilon in better) or "no ε"
            rows.append([f"{says}, {settings}", verdict, f"{first} has the smaller error at ε = {places}"])
    rows += [row for name in TITLES for row in _rows_matter(parts, name)]
    return rows


def _rows_matter(parts: Sequence[Part], name: str) -> list[list[str]]:
    """“Any R ∈ [100, 1k] with W > 1k will provide good results”: against the best R there is."""
    tried = [part for part in parts if part["data"] == name and part["method"] == "RACE"]
    means: dict[float, dict[float, float]] = {}
    for part in tried:
        for rows, errors in part["errors"].items():
            for epsilon, found in errors.items():
                means.setdefault(float(epsilon), {})[float(rows)] = float(np.mean(found))
    ratios = {
        epsilon: max(error for rows, error in by_rows.items() if 100 <= rows <= 1000) / min(by_rows.values())
        for epsilon, by_rows in means.items()
    }
    if not ratios:
        return []
    verdict = "holds" if max(ratios.values()) <= _LITTLE else "in part"
    found = ", ".join(f"{ratio:.1f} at ε = {epsilon:g}" for epsilon, ratio in sorted(ratios.items()))
    says = f"“any R ∈ [100, 1k] … good results”, {TITLES[name]}, W = 1000"
    return [[says, verdict, f"the worst R of 100 to 1000 against the best R tried: {found} times"]]


def _draw(parts: Sequence[Part], path: Path) -> None:
    names = [name for name in TITLES if any(part["data"] == name for part in parts)]
    figure, axes = panel_figure(2 * len(names), columns=2, legend_rows=2)
    for place, (name, settings) in enumerate((name, each) for name in names for each in (PAPER, TUNED)):
        one = axes[place]
        for part in parts:
            if part["data"] != name or part["settings"] not in (settings, "no settings"):
                continue
            x = [each["epsilon"] for each in part["cells"]]
            y = np.array([each["error"] for each in part["cells"]])
            spread = np.array([each["stderr"] or 0.0 for each in part["cells"]])
            dashed = "--" if CONTESTANTS[part["method"]].smooth else "-"
            color = COLORS[part["method"]]
            one.errorbar(
                x, y, spread, linestyle=dashed, color=color, marker="o", markersize=3, label=part["method"]
            )
        one.set_xscale("log")
        one.set_yscale("log")
        one.set_xlabel("ε", fontsize=9, color=INK)
        one.set_title(f"{TITLES[name]}, {settings}", fontsize=9.5, color=INK, loc="left")
    axes[0].set_ylabel("L2 error", fontsize=9, color=INK)
    shown: dict[str, Any] = {}
    for one in axes:
        shown |= dict(zip(*reversed(one.get_legend_handles_labels()), strict=True))
    figure.legend(shown.values(), shown.keys(), loc="lower center", ncols=5, frameon=False, fontsize=8.5)
    save_figure(figure, path)
