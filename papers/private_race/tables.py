"""Tables of results in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from papers.private_race.curves import Curves, Subject


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def curve_table(subject: Subject, dataset: str, methods: Sequence[str], *, digits: int = 3) -> str:
    """The mean of each method at each ε; a mean that moves by chance has its standard error beside it."""
    curves = subject.curves[dataset]
    rows = [
        [
            method,
            *(
                number(mean, error, digits)
                for mean, error in zip(curves.mean(method), curves.stderr(method), strict=True)
            ),
        ]
        for method in methods
        if method in curves.values
    ]
    return markdown_table(["ε", *(f"{epsilon:g}" for epsilon in subject.epsilons)], rows)


def number(mean: float, error: float, digits: int) -> str:
    """``0.901 ± 0.004``; very large values, where a model has gone astray, by their size alone."""
    if mean >= 100.0:
        return f"{mean:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def usual_choices(curves: Curves) -> list[str]:
    """For each ε the choice that most repetitions made, with how many did."""
    return [
        "{} ({})".format(*Counter(at_epsilon).most_common(1)[0])
        for at_epsilon in zip(*curves.chosen, strict=True)
    ]
