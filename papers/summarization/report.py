"""The report: tables, figures and README.md from the results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]

LABELS = {
    "greedy": "greedy, not private",
    "uniform": "uniform sampling",
    "threshold": "threshold (default)",
    "fresh": "fresh quotas",
    "h2": "h2, calibrated",
    "published": "as published, no claim",
}
PLANNED = {"mnist": 3, "census": 10}
COLOURS = {
    "greedy": "#444444",
    "uniform": "#bbbbbb",
    "threshold": "#0b6e99",
    "fresh": "#6aa84f",
    "h2": "#cc7722",
    "published": "#aa3355",
}


def write_report(folder: Path) -> None:
    """Write README.md and one figure for each setting that has results."""
    parts = [_INTRODUCTION]
    for name, title in (("mnist", "MNIST"), ("census", "Census")):
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
        _draw(rows, title, folder / f"{name}.svg")
        parts.append(f"## {title}\n\n{_NOTES[name]}\n\n![{title}: MMD² and accuracy by size]({name}.svg)\n")
        parts.append(_missing(rows, PLANNED[name]))
        parts.append(_table(rows))
        parts.append(_sizes(rows))
    (folder / "README.md").write_text("\n".join(parts), encoding="utf-8")


def _missing(rows: Sequence[Row], repetitions: int) -> str:
    """Says so where results are those of a run that was not finished."""
    complete = len({row["seed"] for row in of(rows, "greedy", 2000)})
    largest = max(row["size"] for row in rows)
    if complete >= repetitions and largest == 8000:
        return ""
    return (
        f"**Unfinished run**: greedy's reference is there for {complete} of {repetitions} repetitions, sizes "
        f"go to {largest:,} of 8,000. Where it is missing no excess can be told.\n"
    )


def of(rows: Sequence[Row], method: str, size: int, epsilon: float | None = None) -> list[Row]:
    """The rows of a method at a size."""
    return [r for r in rows if r["method"] == method and r["size"] == size and r.get("epsilon") == epsilon]


def _methods(rows: Sequence[Row]) -> list[tuple[str, float | None]]:
    found = {(row["method"], row.get("epsilon")) for row in rows}
    order = list(LABELS)
    return sorted(found, key=lambda each: (order.index(each[0]), -(each[1] or 0.0)))


def _table(rows: Sequence[Row], size: int = 2000) -> str:
    """MMD², its excess over greedy as a share of uniform sampling's, accuracy and points seen."""
    lines = [
        f"At {size:,} points, means over repetitions (accuracy ± standard deviation):",
        "",
        "| method | ε | paper's ε | MMD² | excess, share of uniform's | accuracy, % | seen a point | runs |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    # Without greedy's own run there is no excess to tell.
    compared = {row["seed"] for row in of(rows, "greedy", size)}
    seeds = compared or {row["seed"] for row in rows}
    greedy, uniform = (
        np.mean([r["mmd2"] for r in of(rows, method, size) if r["seed"] in seeds] or [np.nan])
        for method in ("greedy", "uniform")
    )
    for method, epsilon in _methods(rows):
        mine = [row for row in of(rows, method, size, epsilon) if row["seed"] in seeds]
        if not mine:
            continue
        mmd = float(np.mean([row["mmd2"] for row in mine]))
        share = (mmd - greedy) / (uniform - greedy)
        accuracy = [100 * row["accuracy"] for row in mine]
        seen = np.mean([row["seen"] for row in mine]) / size if "seen" in mine[0] else float("nan")
        paper = mine[0].get("paper_epsilon")
        lines.append(
            f"| {LABELS[method]} | {'–' if epsilon is None else f'{epsilon:g}'} "
            f"| {'–' if paper is None else f'{paper:.3f}'} | {mmd:.4f} "
            f"| {'–' if np.isnan(share) else f'{share:.3f}'} "
            f"| {np.mean(accuracy):.1f} ± {np.std(accuracy):.1f} "
            f"| {'–' if np.isnan(seen) else f'{seen:.1f}'} | {len(mine)} |"
        )
    return "\n".join([*lines, ""])


def _sizes(rows: Sequence[Row]) -> str:
    """MMD² increase over greedy in percent, as the paper plots it, for the first seed."""
    first = [row for row in rows if row["seed"] == 0]
    sizes = sorted({row["size"] for row in first if row["method"] == "greedy"})
    if not sizes:
        return ""
    lines = [
        "MMD² over greedy's (a factor; 1 is greedy itself), first repetition:",
        "",
        "| method | " + " | ".join(f"{size:,}" for size in sizes) + " |",
        "|---|" + "---:|" * len(sizes),
    ]
    for method, epsilon in _methods(first):
        cells = []
        for size in sizes:
            mine, best = of(first, method, size, epsilon), of(first, "greedy", size)
            cells.append(f"{mine[0]['mmd2'] / best[0]['mmd2']:.2f}" if mine else "–")
        name = LABELS[method] + ("" if epsilon is None else f", ε = {epsilon:g}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _draw(rows: Sequence[Row], title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    first = [row for row in rows if row["seed"] == 0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for method, epsilon in _methods(first):
        mine = sorted(
            (r for r in first if r["method"] == method and r.get("epsilon") == epsilon),
            key=lambda r: r["size"],
        )
        style = "--" if epsilon == 1.0 else "-"
        label = LABELS[method] + ("" if epsilon is None else f", ε = {epsilon:g}")
        sizes = [row["size"] for row in mine]
        left.plot(sizes, [row["mmd2"] for row in mine], style, marker="o", color=COLOURS[method], label=label)
        right.plot(sizes, [100 * row["accuracy"] for row in mine], style, marker="o", color=COLOURS[method])
    left.set(title=f"{title}: MMD² to the validation set", xlabel="summary size", ylabel="MMD²", yscale="log")
    right.set(title=f"{title}: the consumer's accuracy", xlabel="summary size", ylabel="%")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks([1000, 2000, 4000, 8000], ["1,000", "2,000", "4,000", "8,000"])
        axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path)
    plt.close(figure)


_INTRODUCTION = """# Private summarization: a reproduction

Owners send a curator points that match a consumer's validation set. Compared are greedy selection
without privacy, uniform sampling (an equal number from every owner), the sound rules of Hushsum, h2
with its calibration corrected in place of the noise of the fresh rule, and the protocol as published,
which keeps no claim. ε covers every message of every round and the validation set's release, at δ =
1e-5. *Paper's ε* is what the published accounting says of a run of that size at its own parameters, for
the summary's records; 1.4 is its figure for the validation set, at δ = 0.01. An honest account of that
protocol gives no bound.

`python -m papers.summarization.run mnist`, `… census`, `… report`; data from `$HUSHSUM_DATA`. MMD² is
computed with the exact kernel. The published protocol runs here with batches (1/50 of the summary a
round) instead of one point a round; its broadcasts use its table 1 (d = 140, 1,656 and 5 iterations, ε
0.01, 0.05 and 0.01/√(5p)).
"""

_NOTES = {
    "mnist": """Five owners by digit pairs, about 12,000 images each; the target is 3 and 4 at 70 : 30,
a quarter of it for validation (about 370 images). The model has one hidden layer of 32 units with
dropout 0.2, trained for 20 epochs by Adam; it tells apart all digits that the summary has. Pixels are
in [0, 1] and γ is 0.02: at the paper's γ = 0.1 on that scale two images of the target have similarity
0.004 on average, and no summary is much nearer than another.""",
    "census": """Adult: the target is people with a master's, a doctorate or a professional degree.
Everybody else is split evenly among four owners, and 70 % of the target group belongs to one of them,
as with the paper's insurance data, which are not public. Of the other 30 % a quarter is for validation,
without labels, the rest for testing. The model is a linear SVM. The owners hold 2,690 records of the
target group: a larger summary must take others.""",
}
