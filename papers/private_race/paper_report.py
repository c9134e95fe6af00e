"""The parts of README.md on figures 4 and 5 in the paper's own form."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from papers.private_race import classification, paper_classification, paper_regression, regression
from papers.private_race.curves import Curves, Subject
from papers.private_race.drawing import GREEN, ORANGE, PURPLE, SKY, Line, draw_subject
from papers.private_race.tables import curve_table, markdown_table

from hushsum.plotting import BLUE, FAINT, INK, VERMILION

OURS: Final = "sketch, chosen on public records (ours)"
OURS_DELTA: Final = "sketch with δ (ours)"
OBJECTIVE: Final = "objective perturbation"

CLASSIFICATION_LINES: Final = (
    Line(paper_classification.PAPER, "paper's form", INK, width=2.0),
    Line(paper_classification.TABLE_2, "its table 2's bandwidth", FAINT, "--", "x"),
    Line(paper_classification.POWERS, "+ powers 4, 8", GREEN, "-", "^"),
    Line(paper_classification.ROWS, "+ W = 1000, R ≤ 1000", ORANGE, "-", "v"),
    Line(OURS, "ours, chosen on public records", BLUE, width=2.2),
    Line(paper_classification.LOGISTIC, "logistic, best λ", VERMILION, "--", "d"),
)
REGRESSION_LINES: Final = (
    Line(paper_regression.BOTH_QUERIES, "derivative-free, ± queried", INK, width=2.0),
    Line(paper_regression.BOTH_INSERTED, "derivative-free, ± inserted", PURPLE, "-", "s"),
    Line(paper_regression.NO_NOISE, "derivative-free, sketch without noise", INK, "--", ""),
    Line(paper_regression.EXACT, "derivative-free, exact loss", ORANGE, ":", ""),
    Line(paper_regression.MINIMA["padded"], "minimum of the loss", ORANGE, "-", ""),
    Line(paper_regression.MINIMA["record"], "minimum, query's length divided out", FAINT, "--", ""),
    Line(paper_regression.MINIMA["angle"], "minimum, both lengths divided out", FAINT, ":", ""),
    Line(paper_regression.MOMENTS, "moments of the same sketch", BLUE, "-", "s"),
    Line(paper_regression.MOMENTS_NO_NOISE, "moments, sketch without noise", BLUE, "--", ""),
    Line(paper_regression.PRIVBAYES, "PrivBayes", GREEN, "-", "^"),
    Line(OURS, "sketch's moments (ours)", BLUE, width=2.2),
    Line(OURS_DELTA, "the same with δ", SKY, "--", "o"),
    Line(OBJECTIVE, "objective perturbation", VERMILION, "-", "v"),
    Line(paper_regression.LEAST_SQUARES, "least squares, not private", INK, ":", ""),
)


def merged(subject: Subject, other: Subject | None, names: dict[str, str]) -> Subject:
    """A subject with some methods of another one beside its own, at the ε that both have."""
    if other is None or not set(subject.epsilons) <= set(other.epsilons):
        return subject
    places = [other.epsilons.index(epsilon) for epsilon in subject.epsilons]
    curves = {}
    for name, own in subject.curves.items():
        values = dict(own.values)
        if name in other.curves:
            for method, label in names.items():
                rows = other.curves[name].values.get(method, [])
                if rows:
                    values[label] = [[row[place] for place in places] for row in rows]
        curves[name] = Curves(own.records, own.features, values, own.chosen)
    return Subject(subject.name, subject.metric, subject.settings, curves, subject.seconds)


def made(subject: Subject) -> str:
    """How often an experiment was repeated, in what time, and by which sources."""
    fewest, most = subject.repetitions
    times = f"{most}" if fewest == most else f"{fewest} to {most}"
    sources = ", ".join(
        dict.fromkeys(curves.version or "(sources not recorded)" for curves in subject.curves.values())
    )
    return (
        f"{times} repetitions, {subject.seconds / 60.0:.0f} minutes of processor time, hushsum {sources}.\n"
    )


def classification_part(
    subject: Subject, ours: Subject | None, figures: Path, titles: dict[str, str]
) -> dict[str, str]:
    """Figure 4."""
    whole = merged(subject, ours, {classification.SKETCH: OURS})
    draw_subject(
        whole,
        CLASSIFICATION_LINES,
        figures / "classification_paper.png",
        y_label="balanced accuracy",
        titles=titles,
        legend_rows=2,
    )
    methods = [line.method for line in CLASSIFICATION_LINES]
    methods += [f"{method}{paper_classification.PLAIN}" for method in methods]
    parts = []
    for name, curves in whole.curves.items():
        parts.append(f"**{titles[name]}**\n\n{curve_table(whole, name, methods)}\n")
        if curves.chosen:
            parts.append(f"λ of the logistic baseline: {', '.join(curves.chosen[0])}.\n")
    parts += [_gains(whole, titles), made(subject)]
    return {"classification_paper": "\n".join(parts)}


def _gains(subject: Subject, titles: dict[str, str]) -> str:
    """What each choice adds at three budgets, in points of balanced accuracy."""
    steps = (
        (paper_classification.PAPER, paper_classification.POWERS, "powers 4 and 8"),
        (paper_classification.POWERS, paper_classification.ROWS, "W = 1000, more rows"),
        (paper_classification.ROWS, OURS, "whitening, and public choice in place of the test set's"),
        (paper_classification.PAPER, OURS, "all of them"),
    )
    epsilons = [epsilon for epsilon in (0.1, 1.0, 10.0) if epsilon in subject.epsilons]
    rows = []
    for name, curves in subject.curves.items():
        for before, after, words in steps:
            if before in curves.values and after in curves.values:
                gains = [
                    100.0 * (subject.at(name, after, epsilon) - subject.at(name, before, epsilon))
                    for epsilon in epsilons
                ]
                rows.append([f"{titles[name]}: {words}", *(f"{gain:+.1f}" for gain in gains)])
    head = ["what is added, in points, at ε =", *(f"{epsilon:g}" for epsilon in epsilons)]
    return f"What our choices gain over the paper's form:\n\n{markdown_table(head, rows)}\n"


def regression_part(
    subject: Subject, ours: Subject | None, figures: Path, titles: dict[str, str]
) -> dict[str, str]:
    """Figure 5."""
    names = {regression.SKETCH: OURS, regression.SKETCH_DELTA: OURS_DELTA, regression.OBJECTIVE: OBJECTIVE}
    whole = merged(subject, ours, names)
    draw_subject(
        whole,
        REGRESSION_LINES,
        figures / "regression_paper.png",
        y_label="relative squared error",
        titles=titles,
        columns=2,
        limits=(0.0, 1.6),
        legend_rows=7,
    )
    counts = {
        curves.repetitions(paper_regression.PRIVBAYES)
        for curves in whole.curves.values()
        if paper_regression.PRIVBAYES in curves.values
    }
    parts = []
    for name in whole.curves:
        methods = [line.method for line in REGRESSION_LINES]
        parts.append(f"**{titles[name]}**\n\n{curve_table(whole, name, methods)}\n")
    parts.append(made(subject))
    bayes = " or ".join(str(each) for each in sorted(counts)) or "no"
    return {"bayes": bayes, "regression_paper": "\n".join(parts)}
