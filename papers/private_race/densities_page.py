"""DENSITIES.md: figures 3 and 7 and tables 1 and 3 in the form of the paper."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from benchmarks.data import CONTESTS
from benchmarks.writer import Results
from papers.pages import fill_page
from papers.private_race.drawing import GREEN, ORANGE, PURPLE, SKY, panel_figure
from papers.private_race.figure3_report import one_kernel_section
from papers.private_race.kde import FIXED, curves_of, growth, reduced_errors, tuned_growth
from papers.private_race.table2_report import table2_section
from papers.private_race.tables import markdown_table
from papers.provenance import made_by
from papers.result_files import update_file

from hushsum.plotting import BLUE, FAINT, INK, VERMILION, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


YELLOW: Final = "#B8A800"
LINES: Final = {
    "auto": ("auto (grid, Fourier features)", BLUE, "-", "o"),
    "sketch, Laplace": ("RACE", INK, "-", "s"),
    "bernstein": ("Bernstein", PURPLE, "-", "P"),
    "fourier_series": ("spectral", ORANGE, "-", "D"),
    "privbayes": ("PrivBayes", FAINT, "-", "x"),
    "histogram": ("histogram", GREEN, "-", "^"),
    "kme": ("KME (δ = 1e-6)", YELLOW, "--", ">"),
    "pfda": ("PFDA (δ = 1e-6)", VERMILION, "--", "<"),
    "auto, δ": ("auto (δ = 1e-6)", SKY, "--", "o"),
}


def draw_errors(
    cells: Sequence[dict[str, Any]], panels: dict[str, tuple[str, str]], path: Path, *, methods: Sequence[str]
) -> None:
    """One panel a data set: ``panels`` maps its name to a title and the measure to draw."""
    columns = min(len(panels), 2)
    rows = 2 if columns > 1 else 3
    figure, axes = panel_figure(len(panels), columns=columns, legend_rows=rows, across=3.7)
    for one, (name, (title, measure)) in zip(axes, panels.items(), strict=True):
        for method in methods:
            points = sorted(_points(cells, name, method, measure))
            if points:
                label, color, style, marker = LINES[method]
                one.plot(
                    *zip(*points, strict=True), style, color=color, marker=marker, markersize=4, label=label,
                    linewidth=2.2 if method.startswith("auto") else 1.3,
                )  # fmt: skip
        one.set_xscale("log")
        one.set_yscale("log")
        one.set_xticks([0.05, 0.1, 0.5, 1, 2], ["0.05", "0.1", "0.5", "1", "2"])
        one.minorticks_off()
        one.set_xlabel("ε", color=INK, fontsize=10)
        one.set_title(title, fontsize=10, color=INK, fontweight="bold", loc="left")
        one.set_ylabel("L2 error of the function" if measure == "rms" else "mean relative error", fontsize=9)
    _legend(figure, axes, rows)
    save_figure(figure, path)


def _points(
    cells: Sequence[dict[str, Any]], name: str, method: str, measure: str
) -> list[tuple[float, float]]:
    with_delta = method in ("kme", "pfda", "auto, δ")
    hashed = method == "sketch, Laplace"
    return [
        (cell["epsilon"], cell[measure])
        for cell in cells
        if cell["data"] == name
        and cell["method"] == method.removesuffix(", δ")
        and (cell["delta"] > 0) is with_delta
        and ("own kernel" in cell["note"]) is hashed
    ]


def _legend(figure: Any, axes: Sequence[Axes], rows: int) -> None:
    found: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="lower center", ncols=-(-len(found) // rows), frameon=False,
        fontsize=8.5, labelcolor=INK,
    )  # fmt: skip


def draw_curves(curves: dict[str, dict[str, list[float]]], titles: dict[str, str], path: Path) -> None:
    """The released functions of salaries at ε = 1 over the exact one: a row a city, a panel a method."""
    from matplotlib.figure import Figure

    methods = [name for name in next(iter(curves.values())) if name != "exact"]
    figure = Figure(figsize=(2.0 * len(methods) + 0.5, 1.9 * len(curves) + 0.7), dpi=130, facecolor="white")
    axes = figure.subplots(len(curves), len(methods), squeeze=False, sharex=True, sharey="row")
    dollars = np.linspace(10, 250, 200)
    for row, (city, values) in enumerate(curves.items()):
        for one, method in zip(axes[row], methods, strict=True):
            one.plot(dollars, values["exact"], color=FAINT, linewidth=2.4)
            one.plot(dollars, values[method], color=BLUE, linewidth=1.0)
            one.tick_params(colors=INK, labelsize=7.5, length=2, color=FAINT)
            for side in ("top", "right"):
                one.spines[side].set_visible(False)
            if row == 0:
                label = {"race": "RACE", "auto": "auto"}.get(method, LINES.get(method, (method,))[0])
                one.set_title(label.partition(" (")[0], fontsize=9, color=INK, fontweight="bold", loc="left")
        axes[row][0].set_ylabel(titles[city], fontsize=8.5, color=INK)
    for one in axes[-1]:
        one.set_xlabel("salary, thousand $", fontsize=8, color=INK)
    figure.subplots_adjust(left=0.05, right=0.995, top=0.93, bottom=0.13, wspace=0.12, hspace=0.15)
    save_figure(figure, path)


_HERE = Path(__file__).parent
_RACE = Results("comparison")
FIGURE_3: Final = {
    "nyc (function)": ("NYC salaries", "rms"),
    "sf (function)": ("SF salaries", "rms"),
    "skin": ("skin", "relative"),
    "cod_rna": ("cod_rna", "relative"),
}
FIGURE_7: Final = {"covtype": ("covtype, 581,012 × 54", "relative")}

THEORY: Final = {
    "bernstein": ("Bernstein polynomials", "d^(d/(d+H))·(1/ε·log 1/δ)^(H/(d+H))", "d·N·M^d"),
    "pfda": ("PFDA", "2/ε·√(log 2/β · log 1/δ · C/φ)", "d·N²"),
    "mwem": ("MWEM", "N^(2/3)·(log N·log Q/ε)^(1/3)", "d·N·Q"),
    "trigonometric": ("trigonometric polynomials", "1/ε·N^(2d/(2d+H))", "d·N^(1 + d/(2d+H))"),
    "race": ("RACE", "√(N/ε·log 1/δ)", "d·N"),
    "grid": ("grid (not in the paper)", "√(Σk²)/ε over the nodes near a query", "3^d·N"),
}
"""The error of the kernel sum and the time, as table 1 of the paper states them."""

PUBLISHED_TIMES: Final = {
    "pfda": ("> 3 days", "–"),
    "bernstein": ("2.3 days", "6.2 ms"),
    "kme": ("6 h", "1.2 ms"),
    "race": ("15 s", "0.4 ms"),
    "privbayes": ("12 s", "0.5 s"),
    "auto": ("–", "–"),
}

_NAMES: Final = {"bernstein": "Bernstein", "kme": "KME"}


def measure(file: Path, names: Sequence[str]) -> None:
    """Measure parts of ``kde.json`` anew."""
    for name in names:
        _keep(file, name, PARTS[name]())


def write(output: Path) -> Path:
    """The page, with what results there are."""
    results = output / "results"
    kde, table2, one = (results / f"{name}.json" for name in ("kde", "table2", "figure3"))
    own, held_out, measured = (
        json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
        for file in (kde, table2, one)
    )
    return write_page(_RACE.read(), own, held_out, measured, output)


def _keep(file: Path, part: str, measured: Any) -> None:
    """Write a part with its version; other parts are kept."""

    def change(found: dict[str, Any] | None) -> str:
        document = found or {}
        document[part] = measured
        document.setdefault("versions", {})[part] = made_by("papers.private_race.kde")
        return json.dumps(document, ensure_ascii=False) + "\n"

    update_file(file, change)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


PARTS: Final[dict[str, Callable[[], Any]]] = {
    **{f"tuned_growth {name}": partial(tuned_growth, _say, names=[name]) for name in FIXED},
    "growth": lambda: growth(_say),
    "curves": lambda: {name: curves_of(CONTESTS[name](), _say) for name in ("nyc", "sf")},
    "reduced": lambda: reduced_errors(CONTESTS["covtype"](), _say),
}
"""Parts of ``results/kde.json``."""


def write_page(
    race: dict[str, Any] | None,
    own: dict[str, Any] | None,
    held_out: Sequence[dict[str, Any]] | None,
    one_kernel: Sequence[dict[str, Any]] | None,
    output: Path,
) -> Path:
    """Draw the figures and write the page; returns it. Parts without results stay as they are."""
    figures = output / "figures"
    figures.mkdir(exist_ok=True)
    parts = {}
    if one_kernel:
        parts["one_kernel"] = one_kernel_section(one_kernel, figures)
    if held_out:
        parts["table2"] = table2_section(held_out, figures)
    if race is not None and own is not None and {"growth", "curves", "reduced"} <= own.keys():
        parts |= _of_comparison(race, own, figures)
    return fill_page(_HERE / "DENSITIES.md", parts, output)


def _of_comparison(race: dict[str, Any], own: dict[str, Any], figures: Path) -> dict[str, str]:
    """What ``benchmarks comparison`` measured, and the parts of ``kde.json``."""
    cells = race["cells"]
    names = [
        "auto",
        "sketch, Laplace",
        "bernstein",
        "fourier_series",
        "privbayes",
        "histogram",
        "kme",
        "pfda",
    ]
    draw_errors(cells, FIGURE_3, figures / "figure3.png", methods=names)
    draw_curves(own["curves"], {"nyc": "NYC", "sf": "SF"}, figures / "figure3_functions.png")
    reduced = [
        {"data": "covtype", "delta": 1e-6 * (each["method"] == "kme"), "note": "", **each}
        for each in own["reduced"]
    ]
    whole = [cell for cell in cells if not (cell["data"] == "covtype" and cell["method"] == "kme")]
    draw_errors(
        [*whole, *reduced], FIGURE_7, figures / "figure7.png",
        methods=["auto", "auto, δ", "sketch, Laplace", "bernstein", "kme"],
    )  # fmt: skip
    tuned = {name: own.get(f"tuned_growth {name}", {}).get(name) for name in FIXED}
    return {
        "reduced": _reduced(own["reduced"]),
        "table1": _table_1(own["growth"], tuned),
        "table3": _table_3(cells, race["exact"]),
        "versions": _made(own),
    }


def _reduced(reduced: Sequence[dict[str, Any]]) -> str:
    said = []
    for name in dict.fromkeys(each["method"] for each in reduced):
        errors = [each["relative"] for each in reduced if each["method"] == name]
        low, high = min(errors), max(errors)
        numbers = f"{low:.0%}" if round(low, 2) == round(high, 2) else f"{low:.0%} to {high:.0%}"
        # An error of everything, or one that no budget changes, is that of the reduction.
        failed = low > 0.9 or (low > 0.5 and high < 1.1 * low)
        said.append(f"{_NAMES[name]} has an error of {numbers}{', so it **failed** here' if failed else ''}")
    return "; ".join(said)


def _table_1(growth_of: dict[str, Any], tuned: dict[str, Any]) -> str:
    rows = []
    for name, (words, error, seconds) in THEORY.items():
        fixed, best = growth_of[name], tuned.get(name)
        parameter = "–"
        if best is not None and "chosen" in best:
            ends = "" if all(best["inside"]) else ", an end of the grid"
            values = " to ".join(f"{best['chosen'][i]:g}" for i in (0, -1))
            parameter = f"{best['parameter']} {values} (N^{best['chosen_exponent']:.2f}{ends})"
        rows.append(
            [
                words,
                error,
                f"N^{fixed['error_exponent']:.2f}",
                "–" if best is None else f"N^{best['error_exponent']:.2f}",
                parameter,
                seconds,
                f"N^{fixed['time_exponent']:.2f}",
                "–" if best is None else f"N^{best['time_exponent']:.2f}",
            ]
        )
    head = ["method", "bound on the error", "fixed", "tuned", "tuned parameter", "time", "fixed", "tuned"]
    return markdown_table(head, rows)


def _made(own: dict[str, Any]) -> str:
    versions = own.get("versions", {})
    said = [
        f"{name} by hushsum {versions.get(name, '(sources not recorded)')}" for name in PARTS if name in own
    ]
    return f"Parts of `results/kde.json`: {'; '.join(said)}.\n"


def _table_3(cells: Sequence[dict[str, Any]], exact: Sequence[dict[str, Any]]) -> str:
    rows = []
    names = {"race": "sketch, Laplace"}
    for name, (sketch, query) in PUBLISHED_TIMES.items():
        found = [
            cell
            for cell in cells
            if cell["data"] == "skin" and cell["method"] == names.get(name, name) and cell["epsilon"] == 1.0
            and ("own kernel" in cell["note"]) is (name == "race")
        ]  # fmt: skip
        cell = found[0] if found else None
        rows.append(
            [
                "RACE" if name == "race" else name,
                sketch,
                query,
                "one column only" if cell is None else f"{cell['build']:.2g} s",
                "–" if cell is None else _microseconds(cell["query"]),
                "–" if cell is None else f"{cell['relative']:.0%}",
            ]
        )
    peer = next((each for each in exact if each["data"] == "skin"), None)
    if peer is not None:
        rows.append(
            ["exact, scikit-learn", "–", "–", f"{peer['fit']:.2g} s", _microseconds(peer["query"]), "0"]
        )
    head = ["method", "published build", "published query", "build", "query", "relative error"]
    return markdown_table(head, rows)


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2g} ms"
