"""Tables of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from papers.summarization.theorems import broadcast_epsilons, greedy_error, requirements

Row = dict[str, Any]
Floats = NDArray[np.float64]
Method = tuple[str, float | None]

COMPARED = 2000
REPETITIONS = 10
TUNED_ON = 3
"""The first repetitions of MNIST, on which the default's two constants were chosen."""

LABELS = {
    "greedy_exact": "greedy, exact kernel, not private",
    "greedy": "greedy, not private",
    "uniform": "uniform sampling",
    "threshold": "threshold (default)",
    "fresh": "fresh quotas",
    "h2": "h2, calibrated",
    "published": "as published, no claim",
    "published_batches": "as published but in batches of p/50, no claim",
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

    def share(
        self, method: Method, size: int = COMPARED, *, first: int = 0, over: Method | None = None
    ) -> tuple[float, float, int]:
        """Excess MMD² over greedy's as a share of uniform's: of the means, at worst, over how many."""
        mine, greedy, uniform = self.together(size, "mmd2", method, over or GREEDY, UNIFORM, first=first)
        if not len(mine):
            return float("nan"), float("nan"), 0
        shares = (mine - greedy) / (uniform - greedy)
        whole = (mine.mean() - greedy.mean()) / (uniform.mean() - greedy.mean())
        return float(whole), float(shares.max()), len(mine)


GREEDY: Method = ("greedy", None)
EXACT_GREEDY: Method = ("greedy_exact", None)
UNIFORM: Method = ("uniform", None)


def missing(results: Results) -> str:
    """The versions, and where results are those of a run that was not finished, how many there are."""
    counts = {size: len(results.by_seed(GREEDY, size, "mmd2")) for size in results.sizes}
    made = versions(results.rows)
    if all(count >= REPETITIONS for count in counts.values()):
        return made
    parts = ", ".join(f"{count} at {size:,}" for size, count in counts.items())
    return f"Repetitions with greedy's reference: {parts}. Every table says over how many it is. {made}"


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
        if title.startswith("MNIST"):
            held, _, rest = results.share(method, first=TUNED_ON)
            found = f"{held:.3f}" if rest else "– (there are no others)"
            lines.append(
                f"| the same without the repetitions on which constants were chosen | {found} | {rest} |"
            )
        over_exact, _, runs = results.share(method, over=EXACT_GREEDY)
        if runs:
            lines.append(
                f"| the same over greedy with the exact kernel | {unsigned(over_exact):.3f} | {runs} |"
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
        "| method | ε | paper's ε | MMD² | excess, share of uniform's | accuracy, % | seen per point "
        "| runs |",
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
            f"| {f'{paper[0]:.3f}' if paper else '–'} | {with_error(mmd, 5)} "
            f"| {'–' if np.isnan(share) else f'{unsigned(share):.3f}'} "
            f"| {with_error(100 * accuracy, 2)} "
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
    """MMD² over greedy's by size, as the paper plots it: over greedy with features, and with the kernel."""
    return "\n".join(
        _increase(results, reference, words)
        for reference, words in ((GREEDY, "greedy's"), (EXACT_GREEDY, "that of greedy with the exact kernel"))
        if reference in results.methods
    )


def _increase(results: Results, reference: Method, words: str) -> str:
    lines = [
        f"Increase of MMD² over {words}, in percent as the paper has it, means over repetitions (how many):",
        "",
        "| method | " + " | ".join(f"{size:,}" for size in results.sizes) + " |",
        "|---|" + "---:|" * len(results.sizes),
    ]
    for method in results.methods:
        if method == reference:
            continue
        cells = []
        for size in results.sizes:
            mine, greedy = results.together(size, "mmd2", method, reference)
            more = 100.0 * (mine.mean() / greedy.mean() - 1.0) if len(mine) else 0.0
            cells.append(f"{more:,.0f} ({len(mine)})" if len(mine) else "–")
        lines.append(f"| {label(method)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def versions(rows: Sequence[Row]) -> str:
    """Which version measured how many rows."""
    counts = Counter(row.get("version", "") for row in rows)
    parts = [
        f"{number} by hushsum {name}" if name else f"{number} by hushsum (sources not recorded)"
        for name, number in sorted(counts.items(), key=lambda each: -each[1])
    ]
    return f"Results: {'; '.join(parts)}.\n"


def many_owners(rows: Sequence[Row]) -> str:
    """Points seen by the number of owners, means over repetitions."""
    lines = [
        "| owners K | method | ε_auc | seen per point | by rank alone | Lemma 5's bound | K^{1/3} | MMD² "
        "| uniform's | runs |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = (row["owners"], row["method"], row.get("epsilon"), row.get("auction_epsilon"))
        found.setdefault(key, []).append(row)
    for (owners, method, epsilon, rate), same in found.items():
        if method == "uniform":
            continue
        seen, mmd = (np.array([row[what] for row in same]) for what in ("seen", "mmd2"))
        uniform = np.mean([row["mmd2"] for row in found[owners, "uniform", None, None]])
        first = same[0]
        auction = (
            f"{rate:.4f} | {seen.mean() / first['size']:.1f} | {first['expected']:.1f} | {first['bound']:.1f}"
            if rate is not None
            else f"– | {seen.mean() / first['size']:.1f} | – | –"
        )
        lines.append(
            f"| {owners} | {label((method, epsilon))} | {auction} | {first['order']:.2f} "
            f"| {mmd.mean():.5f} | {uniform:.5f} | {len(same)} |"
        )
    return "\n".join([*lines, "", versions(rows)])


def theorem_needs() -> str:
    """What Theorem 2 needs, by Lemma 4 and Theorem 6, at the sizes of the paper's experiments."""
    lines = ["| quantity | needed | in the paper's experiments |", "|---|---:|---:|"]
    points, size, delta, width = 60_000, 2000, 1e-4, 140
    needed = requirements(points, size, delta, constant=1.0)
    at_width = requirements(points, size, delta, constant=1.0, width=width)
    rounds, validation = broadcast_epsilons(1.0, delta, width**2, size)
    lines += [
        f"| width d of h1, for an additive error a = 1 | {needed.width:,.0f} | {width} |",
        f"| validation points at d = {width} | {at_width.validation:,.0f} | about 370 |",
        f"| seed points at d = {width} | {at_width.seeds:.1e} | 150 |",
        f"| iterations T of h2 | d² = {width**2:,} | 1,656 and 5 |",
        f"| ε of an iteration, first and last round, for ε = 1 | {rounds[0]:.1e} to {rounds[-1]:.1e} "
        f"| 0.05, then {0.01 / (5 * size) ** 0.5:.1e} |",
        f"| ε of an iteration on the validation set, for ε = 1 | {validation:.1e} | 0.01 |",
        f"| bound on the additive error at d = {width}, ε = 1, a = 1 "
        f"| {greedy_error(width, size, 1.0, 1.0):.0f} | J is at most 1 |",
        "",
    ]
    return "\n".join(lines)


def references(rows: Sequence[Row], results: Results) -> str:
    """MMD² of greedy by what its gains are computed from, and the excess of the others over it."""
    others: list[Method] = [UNIFORM, ("published", None), ("threshold", 2.0)]
    head = ["greedy with", "MMD²", "points of the target's digits", *(label(each) for each in others), "runs"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["method"] == "greedy":
            found.setdefault(row["with"], []).append(row)
    for way, same in found.items():
        mmd = {row["seed"]: row["mmd2"] for row in same}
        cells = []
        for method in others:
            theirs = results.by_seed(method, same[0]["size"], "mmd2")
            both = sorted(set(mmd) & set(theirs))
            more = sum(theirs[seed] for seed in both) / sum(mmd[seed] for seed in both) - 1.0 if both else 0.0
            cells.append(f"{more:+.0%}" if both else "–")
        share = np.mean([row["of_target"] for row in same])
        mean = np.mean(list(mmd.values()))
        lines.append(f"| {way} | {mean:.5f} | {share:.0%} | {' | '.join(cells)} | {len(same)} |")
    more_features = [row for row in rows if row["method"] == "threshold"]
    if more_features:
        seeds = {row["seed"] for row in more_features}
        few = [v for s, v in results.by_seed(("threshold", 2.0), more_features[0]["size"], "mmd2").items()
               if s in seeds]  # fmt: skip
        mean = np.mean([row["mmd2"] for row in more_features])
        beside = f", {np.mean(few):.5f} with the 500 of the other tables" if few else ""
        lines += ["", f"The default rule at ε = 2 with {more_features[0]['with']}: MMD² {mean:.5f}{beside}."]
    return "\n".join([*lines, "", versions(rows)])


def groups(rows: Sequence[Row]) -> str:
    """By how much a model of a group's own members is better on it than a uniform one."""
    lines = ["| group | own minus uniform, points |", "|---|---:|"]
    for group in dict.fromkeys(row["group"] for row in rows):
        more = 100 * np.array([row["own"] - row["uniform"] for row in rows if row["group"] == group])
        lines.append(f"| {group} | {more.mean():+.2f} ± {error(more):.2f} |")
    return "\n".join([*lines, "", versions(rows)])


def unsigned(value: float) -> float:
    """A number that rounds to 0 in three places without its sign."""
    return 0.0 if abs(value) < 0.0005 else value


def with_error(values: Floats, digits: int) -> str:
    """A mean and its standard error; a single value alone."""
    text = f"{values.mean():.{digits}f}"
    return f"{text} ± {error(values):.{digits}f}" if len(values) > 1 else text


def error(values: Floats) -> float:
    """The standard error of a mean; NaN for one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
