"""README.md of the reproduction: pictures and verdicts from the JSON results."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from papers.pages import fill_page

from hushsum.plotting import FAINT, GRID, INK, save_figure

COLORS: Final = ("#0072B2", "#D55E00", "#E69F00", "#222222", "#009E73", "#CC79A7")
_LOGARITHMIC_X: Final = ("figure_1", "figure_3", "figure_4_delta")
_COMPARED: Final = ("gaussian", "laplace")
_AXES: Final = {
    "figure_1": "answers",
    "figure_2": "ε",
    "figure_3": "δ",
    "figure_4": "ε",
    "figure_4_delta": "δ",
    "figure_5": "ε, or records",
    "figure_6": "ε",
}
_MEASURES: Final = {
    "histogram": "KL divergence",
    "kernel density": "KL divergence",
    "Gaussian process": "RMSE",
    "kernel SVM": "classification error",
}


def write_report(folder: Path) -> Path:
    """Draw what results there are, and fill in the page."""
    found = {
        name: json.loads((folder / "results" / f"{name}.json").read_text(encoding="utf-8"))
        for name in _AXES
        if (folder / "results" / f"{name}.json").exists()
    }
    (folder / "figures").mkdir(exist_ok=True)
    parts = {}
    for name, document in found.items():
        panels = document["panels"]
        _draw(name, panels, folder / "figures" / f"{name}.png")
        verdicts = "\n".join(f"- {line}" for line in _verdicts(name, panels))
        parts[name] = f"{_made(document)}\n\n{verdicts}"
    return fill_page(Path(__file__).parent / "README.md", parts, folder)


def _made(document: dict[str, Any]) -> str:
    """Repetitions, version and time of a figure."""
    times = sorted({panel["repetitions"] for panel in document["panels"].values()})
    repetitions = " or ".join(str(each) for each in times)
    return (
        f"{repetitions} repetitions for every point; hushsum {document['version']}, "
        f"{document['seconds']:.0f} s of processor time."
    )


def _draw(name: str, panels: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    columns = len(panels) if len(panels) < 5 else 3
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.5 * columns + 0.4, 3.1 * rows + 0.5), dpi=130, facecolor="white")
    names = dict.fromkeys(line for panel in panels.values() for line in panel["lines"])
    colors = dict(zip(names, COLORS, strict=False))
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)[: len(panels)]
    for one, (title, panel) in zip(axes, panels.items(), strict=True):
        for line, values in panel["lines"].items():
            color = {"no privacy": INK, "constant": FAINT}.get(line, colors[line])
            mean, spread = np.array(values["mean"]), np.array(values["std"])
            style = {"no privacy": ":", "constant": "--"}.get(line, "-")
            label = f"n = {line}" if line.isdigit() else line
            one.plot(
                panel["x"], mean, style, color=color, label=label, marker="o", markersize=3, linewidth=1.5
            )
            if name != "figure_5":
                # On a logarithmic axis a band that reaches 0 has no lower edge.
                spread = np.minimum(spread, 0.999 * mean) if _logarithmic(name) else spread
                one.fill_between(
                    panel["x"], mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0
                )
        if name in _LOGARITHMIC_X or "by n" in title or max(panel["x"]) > 1.0:
            one.set_xscale("log")
            one.xaxis.set_minor_formatter(NullFormatter())
        if _logarithmic(name):
            positive = [v for each in panel["lines"].values() for v in each["mean"] if v > 0.0]
            one.set_yscale("log")
            one.yaxis.set_minor_formatter(NullFormatter())
            low, high = np.log10(min(positive)), np.log10(max(positive))
            one.set_ylim(10.0 ** np.floor(low), 10.0 ** np.ceil(high))
        one.set_title(title, fontsize=9.5, color=INK)
        one.set_xlabel("records" if "by n" in title else "ε" if "by ε" in title else _AXES[name], fontsize=9)
        one.set_ylabel(_measure(name, title), fontsize=9)
        one.grid(color=GRID, linewidth=0.8)
        one.set_axisbelow(True)
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            one.spines[side].set_color(FAINT)
        one.tick_params(labelsize=8, color=FAINT)
    handles = {
        label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    figure.tight_layout(rect=(0.0, 0.09 if rows == 1 else 0.05, 1.0, 1.0))
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=6, fontsize=8.5, frameon=False)
    save_figure(figure, path)


def _logarithmic(name: str) -> bool:
    return name in ("figure_1", "figure_2", "figure_3", "figure_5")


def _measure(name: str, title: str) -> str:
    if name == "figure_5":
        return "ms per query"
    return next(measure for model, measure in _MEASURES.items() if title.startswith(model))


def _verdicts(name: str, panels: dict[str, Any]) -> list[str]:
    constant = [
        _against_constant(title, line, panel)
        for title, panel in panels.items()
        for line in panel["lines"]
        if "constant" in panel["lines"] and line not in ("no privacy", "constant", *_COMPARED)
    ]
    constant = [f"Worse than a constant: {'; '.join(each for each in constant if each) or 'nowhere'}."]
    if name == "figure_1":
        return [*(_from_when(title, panel) for title, panel in panels.items()), *constant]
    if name in ("figure_2", "figure_3"):
        return [*(_everywhere(title, panel, _AXES[name]) for title, panel in panels.items()), *constant]
    if name == "figure_5":
        return [_range(title, panel) for title, panel in panels.items()]
    what = _AXES[name]
    found = [
        f"**{title}, {f'n = {line}' if line.isdigit() else line}**{_parameter(panel, line)}, with {what}: "
        f"{_trend(values['mean'])}"
        for title, panel in panels.items()
        for line, values in panel["lines"].items()
        if line not in ("no privacy", "constant")
    ]
    if name.startswith("figure_4"):
        found += [_falls_with_records(title, panel, what) for title, panel in panels.items()]
    return found + constant


def _against_constant(title: str, line: str, panel: dict[str, Any]) -> str:
    """Where a line has at least the error of the constant, which needs next to nothing of the records."""
    pairs = zip(panel["lines"][line]["mean"], panel["lines"]["constant"]["mean"], strict=True)
    places = [f"{x:g}" for x, (mine, least) in zip(panel["x"], pairs, strict=True) if mine >= least]
    name = f"{title}, n = {line}" if line.isdigit() else f"{title}, {line}"
    return f"{name} at {', '.join(places)}" if places else ""


def _parameter(panel: dict[str, Any], line: str) -> str:
    """What was chosen for a line on records that are neither fitted nor scored in the figure."""
    chosen = panel.get("parameters", {}).get(line)
    if not chosen:
        return ""
    low, high = min(chosen["C"]), max(chosen["C"])
    values = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return f" (C = {values}, chosen on other records)"


def _from_when(title: str, panel: dict[str, Any]) -> str:
    ours = np.array(panel["lines"]["functional"]["mean"])
    said = []
    for other in _COMPARED:
        worse = ours >= np.array(panel["lines"][other]["mean"])
        first = 0 if not worse.any() else int(np.flatnonzero(worse)[-1]) + 1
        said.append(
            f"{other} from {_answers(panel['x'][first])} on"
            if first < len(worse)
            else f"{other} nowhere here"
        )
    last = panel["lines"]["gaussian"]["mean"][-1] / max(ours[-1], 1e-300)
    return (
        f"**{title}**: functional perturbation is better than {' and '.join(said)}; "
        f"at {_answers(panel['x'][-1])} the error of the Gaussian is {last:.3g} times as large."
    )


def _answers(number: int) -> str:
    return f"{number} answer{'' if number == 1 else 's'}"


def _everywhere(title: str, panel: dict[str, Any], what: str) -> str:
    ours = panel["lines"]["functional"]["mean"]
    better = all(
        mine < theirs
        for other in _COMPARED
        for mine, theirs in zip(ours, panel["lines"][other]["mean"], strict=True)
    )
    word = "better" if better else "**not better**"
    return f"**{title}**: functional perturbation is {word} at every {what}. {_trend(ours)}"


def _trend(means: list[float]) -> str:
    falls = means[-1] < means[0]
    word = "falls" if falls else "**does not fall**"
    steady = falls and all(later <= earlier for earlier, later in pairwise(means))
    return f"Its error {word} from {means[0]:.3g} to {means[-1]:.3g}{', at every step' if steady else ''}."


def _falls_with_records(title: str, panel: dict[str, Any], what: str) -> str:
    middle = len(panel["x"]) // 2
    means = [values["mean"][middle] for line, values in panel["lines"].items() if line != "constant"]
    return f"**{title}**, with records at {what} = {panel['x'][middle]:g}: {_trend(means)}"


def _range(title: str, panel: dict[str, Any]) -> str:
    said = ", ".join(
        f"{line} {values['mean'][0]:.3g} to {values['mean'][-1]:.3g}"
        for line, values in panel["lines"].items()
    )
    return f"**{title}**, from {panel['x'][0]:g} to {panel['x'][-1]:g}: {said} ms."
