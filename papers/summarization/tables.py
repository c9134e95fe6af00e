"""Tables of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = dict[str, Any]
Floats = NDArray[np.float64]
Method = tuple[str, float | None]

COMPARED = 2000
REPETITIONS = 10
TUNED_ON = 3
"""The first repetitions of MNIST, on which the default's two constants were chosen."""

LABELS = {
    "greedy": "greedy, not private",
    "uniform": "uniform sampling",
    "threshold": "threshold (default)",
    "fresh": "fresh quotas",
    "h2": "h2, calibrated",
    "published": "as published, no claim",
}


def label(method: Method) -> str:
    """A method's name with its ε."""
    return LABELS[method[0]] + ("" if method[1] is None else f", ε = {method[1]:g}")


class Results:
    """Rows of one setting."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)

    @property
    def methods(self) -> list[Method]:
        """Every method with its ε, in the order of the tables."""
        found = {(row["method"], row.get("epsilon")) for row in self.rows}
        order = list(LABELS)
        return sorted(found, key=lambda each: (order.index(each[0]), -(each[1] or 0.0)))

    @property
    def sizes(self) -> list[int]:
        """The summaries' sizes."""
        return sorted({row["size"] for row in self.rows})

    def by_seed(self, method: Method, size: int, what: str) -> dict[int, float]:
        """One number of a method at a size, for each repetition that has it."""
        return {
            row["seed"]: row[what]
            for row in self.rows
            if (row["method"], row.get("epsilon")) == method and row["size"] == size and what in row
        }

    def together(self, size: int, what: str, *methods: Method, first: int = 0) -> list[Floats]:
        """The numbers of several methods over the repetitions that all of them have, aligned."""
        found = [self.by_seed(method, size, what) for method in methods]
        seeds = sorted(set.intersection(*(set(each) for each in found)))
        return [np.array([each[seed] for seed in seeds if seed >= first]) for each in found]

    def share(self, method: Method, size: int = COMPARED, *, first: int = 0) -> tuple[float, float, int]:
        """Excess MMD² over greedy's as a share of uniform's: of the means, at worst, over how many."""
        mine, greedy, uniform = self.together(size, "mmd2", method, GREEDY, UNIFORM, first=first)
        if not len(mine):
            return float("nan"), float("nan"), 0
        shares = (mine - greedy) / (uniform - greedy)
        whole = (mine.mean() - greedy.mean()) / (uniform.mean() - greedy.mean())
        return float(whole), float(shares.max()), len(mine)


GREEDY: Method = ("greedy", None)
UNIFORM: Method = ("uniform", None)


def missing(results: Results) -> str:
    """Says so where results are those of a run that was not finished."""
    counts = {size: len(results.by_seed(GREEDY, size, "mmd2")) for size in results.sizes}
    if all(count >= REPETITIONS for count in counts.values()):
        return ""
    parts = ", ".join(f"{count} at {size:,}" for size, count in counts.items())
    return f"Repetitions with greedy's reference: {parts}. Every table says over how many it is.\n"


def targets(results: Results, title: str) -> str:
    """What was aimed at, and what was found."""
    lines = ["| aim | found | over |", "|---|---:|---:|"]
    for epsilon, aim in ((2.0, "a quarter"), (1.0, "half")):
        method = ("threshold", epsilon)
        share, worst, runs = results.share(method)
        if not runs:
            continue
        lines.append(
            f"| excess at ε = {epsilon:g}, size {COMPARED:,}: at most {aim} of uniform sampling's "
            f"| {unsigned(share):.3f} (worst {worst:.3f}) | {runs} |"
        )
        if title == "MNIST":
            held, _, rest = results.share(method, first=TUNED_ON)
            lines.append(
                f"| the same without the repetitions on which constants were chosen | {held:.3f} | {rest} |"
            )
        mine, greedy, h2 = results.together(COMPARED, "mmd2", method, GREEDY, ("h2", epsilon))
        if len(mine):
            ours, theirs = mine.mean() - greedy.mean(), h2.mean() - greedy.mean()
            times = f"{theirs / ours:.1f} ×" if ours > theirs / 100 else "over 100 ×"
            lines.append(f"| excess at least 2 × below h2's at ε = {epsilon:g} | {times} | {len(mine)} |")
    return "\n".join([*lines, ""]) if len(lines) > 2 else ""


def standing(results: Results, size: int) -> str:
    """MMD², its excess over greedy as a share of uniform sampling's, accuracy and points seen."""
    lines = [
        f"At {size:,} points, means over repetitions ± their standard errors:",
        "",
        "| method | ε | paper's ε | MMD² | excess, share of uniform's | accuracy, % | seen a point | runs |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for method in results.methods:
        mmd, accuracy, seen = (
            np.array(list(results.by_seed(method, size, what).values()))
            for what in ("mmd2", "accuracy", "seen")
        )
        if not len(mmd):
            continue
        paper = list(results.by_seed(method, size, "paper_epsilon").values())
        share = results.share(method, size)[0]
        lines.append(
            f"| {LABELS[method[0]]} | {'–' if method[1] is None else f'{method[1]:g}'} "
            f"| {f'{paper[0]:.3f}' if paper else '–'} | {mmd.mean():.5f} ± {error(mmd):.5f} "
            f"| {'–' if np.isnan(share) else f'{unsigned(share):.3f}'} "
            f"| {100 * accuracy.mean():.2f} ± {100 * error(accuracy):.2f} "
            f"| {f'{seen.mean() / size:.1f}' if len(seen) else '–'} | {len(mmd)} |"
        )
    return "\n".join([*lines, ""])


def paired(results: Results) -> str:
    """Differences in accuracy within repetitions."""
    lines = [
        "Accuracy against the references, in points: differences in repetitions ± standard errors (runs):",
        "",
        "| method | size | minus uniform's | minus greedy's |",
        "|---|---:|---:|---:|",
    ]
    for method in results.methods:
        for size in results.sizes:
            if method[0] not in ("threshold", "published"):
                continue
            cells = []
            for reference in (UNIFORM, GREEDY):
                mine, theirs = results.together(size, "accuracy", method, reference)
                more = 100 * (mine - theirs)
                cells.append(
                    f"{more.mean():+.2f} ± {error(more):.2f} ({len(more)})" if len(more) > 1 else "–"
                )
            if cells[0] != "–":
                lines.append(f"| {label(method)} | {size:,} | {cells[0]} | {cells[1]} |")
    return "\n".join([*lines, ""]) if len(lines) > 4 else ""


def sizes(results: Results) -> str:
    """MMD² over greedy's by size, as the paper plots it."""
    lines = [
        "Increase of MMD² over greedy's, in percent as the paper has it, means over repetitions (how many):",
        "",
        "| method | " + " | ".join(f"{size:,}" for size in results.sizes) + " |",
        "|---|" + "---:|" * len(results.sizes),
    ]
    for method in results.methods:
        if method == GREEDY:
            continue
        cells = []
        for size in results.sizes:
            mine, greedy = results.together(size, "mmd2", method, GREEDY)
            more = 100.0 * (mine.mean() / greedy.mean() - 1.0) if len(mine) else 0.0
            cells.append(f"{more:,.0f} ({len(mine)})" if len(mine) else "–")
        lines.append(f"| {label(method)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def many_owners(rows: Sequence[Row]) -> str:
    """Points seen by the number of owners."""
    lines = [
        "| owners K | method | seen a point | K^{1/3} | Lemma 5's bound | MMD² | uniform's |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    uniform = {row["owners"]: row["mmd2"] for row in rows if row["method"] == "uniform"}
    for row in rows:
        if row["method"] == "uniform":
            continue
        bound = f"{row['bound']:.1f}" if row["method"] == "published" else "–"
        lines.append(
            f"| {row['owners']} | {label((row['method'], row.get('epsilon')))} "
            f"| {row['seen'] / row['size']:.2f} | {row['order']:.2f} | {bound} "
            f"| {row['mmd2']:.5f} | {uniform[row['owners']]:.5f} |"
        )
    return "\n".join([*lines, ""])


def groups(rows: Sequence[Row]) -> str:
    """By how much a model of a group's own members is better on it than a uniform one."""
    lines = ["| group | own minus uniform, points |", "|---|---:|"]
    for group in dict.fromkeys(row["group"] for row in rows):
        more = 100 * np.array([row["own"] - row["uniform"] for row in rows if row["group"] == group])
        lines.append(f"| {group} | {more.mean():+.2f} ± {error(more):.2f} |")
    return "\n".join([*lines, ""])


def unsigned(value: float) -> float:
    """A number that rounds to 0 in three places without its sign."""
    return 0.0 if abs(value) < 0.0005 else value


def error(values: Floats) -> float:
    """The standard error of a mean; NaN for one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
