"""README.md of the reproduction: figures, tables and verdicts from the JSON results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from papers.pages import fill_page
from papers.private_race import anomalies, classification, paper_classification, paper_regression, regression
from papers.private_race.curves import Curves, Subject, load_subject
from papers.private_race.drawing import GREEN, ORANGE, PURPLE, SKY, Line, draw_subject
from papers.private_race.tables import curve_table, markdown_table, usual_choices

from hushsum.plotting import BLUE, FAINT, INK, VERMILION


@dataclass(frozen=True, slots=True)
class Verdict:
    """An expectation, whether it holds, and the numbers."""

    expected: str
    holds: bool
    found: str


def classification_verdicts(subject: Subject) -> list[Verdict]:
    """The sketch against the exact rule at ε = 1, and against each form of the baseline from ε = 0.3 on."""
    gaps = {
        name: 100.0
        * (subject.at(name, classification.EXACT, 1.0) - subject.at(name, classification.SKETCH, 1.0))
        for name in subject.curves
    }
    verdicts = [
        Verdict(
            "At ε = 1 the sketch is within 3 points of balanced accuracy of the exact rule with the same "
            "kernel.",
            all(gap <= 3.0 for gap in gaps.values()),
            "in points: " + _distance(gaps, 1),
        )
    ]
    for baseline, words in (
        (classification.LOGISTIC, "objective perturbation with the paper's grid of λ"),
        (classification.WIDE, "objective perturbation with a wider grid of λ"),
        (classification.THRESHOLD, "objective perturbation with a wider grid of λ and a tuned threshold"),
    ):
        names = list(subject.curves)
        found = _behind(subject, classification.SKETCH, baseline, lowest=0.3, sign=1.0, names=names)
        most = max(sum(epsilon in gaps for gaps in found.values()) for epsilon in subject.epsilons)
        verdicts.append(
            Verdict(
                f"At every ε ≥ 0.3 the sketch is at least as good as {words} on two of three sets.",
                most <= 1,
                _worse_where(found),
            )
        )
    return verdicts


def anomaly_verdicts(subject: Subject) -> list[Verdict]:
    """The sketch against the exact density, at ε = 1."""
    gaps = {
        name: subject.at(name, anomalies.EXACT, 1.0) - subject.at(name, anomalies.SKETCH, 1.0)
        for name in subject.curves
    }
    required = [gap for name, gap in gaps.items() if name in ("kdd_http", "shuttle")]
    return [
        Verdict(
            "At ε = 1 the area under the ROC curve is within 0.02 of that of the exact density with the same "
            "kernel on kdd_http and shuttle.",
            all(gap <= 0.02 for gap in required),
            _distance(gaps, 4),
        )
    ]


def regression_verdicts(subject: Subject) -> list[Verdict]:
    """The sketch against objective perturbation, AdaSSP against all, and the automatic choice."""
    some = [name for name in subject.curves if name != "airfoil"]
    verdicts = []
    for rival, words in (
        (regression.OBJECTIVE, "objective perturbation with a bound of 2 on θ"),
        (regression.UNBOUNDED, "objective perturbation with a wide bound on θ"),
    ):
        found = _behind(subject, regression.SKETCH, rival, lowest=0.5, sign=-1.0, names=some)
        verdicts.append(
            Verdict(
                f"For ε ≥ 0.5 the sketch has a smaller error than {words} on naval, gas and protein.",
                not any(found.values()),
                _worse_where(found),
            )
        )
    verdicts.append(_adassp_verdict(subject))
    verdicts.append(_auto_verdict(subject))
    return verdicts


def _adassp_verdict(subject: Subject) -> Verdict:
    rivals = (regression.SSP, regression.OPS, regression.ADAOPS, regression.OBJECTIVE, regression.SKETCH)
    cases = [(name, epsilon) for name in subject.curves for epsilon in subject.epsilons if epsilon >= 0.1]
    won = [
        case
        for case in cases
        if _error(subject, regression.PUBLISHED, case)
        <= 1.05 * min(_error(subject, rival, case) for rival in rivals)
    ]
    return Verdict(
        "AdaSSP with its published constants (δ = 1e-6) has the smallest error among the published methods, "
        "or one within 5 % of it, in four cases of five.",
        len(won) >= 0.8 * len(cases),
        f"in {len(won)} of {len(cases)} cases with ε ≥ 0.1",
    )


def _auto_verdict(subject: Subject) -> Verdict:
    cases = [(name, epsilon) for name in subject.curves for epsilon in subject.epsilons]
    near = [
        case
        for case in cases
        if _error(subject, regression.AUTO, case)
        <= 1.1 * min(_error(subject, single, case) for single in regression.SINGLE)
    ]
    return Verdict(
        "`auto` is within 10 % of the best single method in four cases of five.",
        len(near) >= 0.8 * len(cases),
        f"in {len(near)} of {len(cases)} cases",
    )


def _error(subject: Subject, method: str, case: tuple[str, float]) -> float:
    return subject.at(case[0], method, case[1])


def _behind(
    subject: Subject, method: str, rival: str, *, lowest: float, sign: float, names: Sequence[str]
) -> dict[str, dict[float, float]]:
    """By how much the method's mean is worse than its rival's, for each data set and ε where it is.

    ``sign`` is 1 where more is better and −1 where less is.
    """
    gaps = {
        name: {
            epsilon: sign * (subject.at(name, rival, epsilon) - subject.at(name, method, epsilon))
            for epsilon in subject.epsilons
            if epsilon >= lowest
        }
        for name in names
    }
    return {name: {epsilon: gap for epsilon, gap in each.items() if gap > 0.0} for name, each in gaps.items()}


def _worse_where(behind: dict[str, dict[float, float]]) -> str:
    worse = [
        f"{name} at ε = {', '.join(f'{epsilon:g}' for epsilon in gaps)} (by up to {max(gaps.values()):.3f})"
        for name, gaps in behind.items()
        if gaps
    ]
    return f"worse on {'; '.join(worse)}" if worse else "better everywhere"


def _distance(gaps: dict[str, float], digits: int) -> str:
    return "; ".join(
        f"{name}: {abs(gap):.{digits}f} {'behind' if gap >= 0.0 else 'ahead'}" for name, gap in gaps.items()
    )


OURS: Final = "sketch, chosen on public records (ours)"
OURS_DELTA: Final = "sketch with δ (ours)"
OBJECTIVE: Final = "objective perturbation"

PAPER_CLASSIFICATION_LINES: Final = (
    Line(paper_classification.PAPER, "paper's form", INK, width=2.0),
    Line(paper_classification.TABLE_2, "its table 2's bandwidth", FAINT, "--", "x"),
    Line(paper_classification.POWERS, "+ powers 4, 8", GREEN, "-", "^"),
    Line(paper_classification.ROWS, "+ W = 1000, R ≤ 1000", ORANGE, "-", "v"),
    Line(OURS, "ours, chosen on public records", BLUE, width=2.2),
    Line(paper_classification.LOGISTIC, "logistic, best λ", VERMILION, "--", "d"),
)
PAPER_REGRESSION_LINES: Final = (
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
        PAPER_CLASSIFICATION_LINES,
        figures / "classification_paper.png",
        y_label="balanced accuracy",
        titles=titles,
        legend_rows=2,
    )
    methods = [line.method for line in PAPER_CLASSIFICATION_LINES]
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
        PAPER_REGRESSION_LINES,
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
        methods = [line.method for line in PAPER_REGRESSION_LINES]
        parts.append(f"**{titles[name]}**\n\n{curve_table(whole, name, methods)}\n")
    parts.append(made(subject))
    bayes = " or ".join(str(each) for each in sorted(counts)) or "no"
    return {"bayes": bayes, "regression_paper": "\n".join(parts)}


HERE: Final = Path(__file__).parent

CLASSIFICATION_LINES: Final = (
    Line(classification.SKETCH, "sketch, pure ε", BLUE, width=2.2),
    Line(classification.GAUSSIAN, "sketch, δ = 1e-6", SKY, "--", "s"),
    Line(classification.EXACT, "exact kernel sums", INK, ":", ""),
    Line(classification.LOGISTIC, "logistic, paper's λ", VERMILION, "-", "^"),
    Line(classification.WIDE, "logistic, wider λ", ORANGE, "-", "v"),
    Line(classification.THRESHOLD, "logistic, wider λ and threshold", PURPLE, "--", "d"),
)
ANOMALY_LINES: Final = (
    Line(anomalies.SKETCH, "sketch", BLUE, width=2.2),
    Line(anomalies.EXACT, "exact density", INK, ":", ""),
    Line(anomalies.PRIVATE_ACE, "ACE, private", VERMILION, "-", "^"),
    Line(anomalies.ACE, "ACE, not private", ORANGE, ":", ""),
)
REGRESSION_LINES: Final = (
    Line(regression.SKETCH, "sketch", BLUE, width=2.2),
    Line(regression.SKETCH_DELTA, "sketch with δ", BLUE, "--", "o"),
    Line(regression.OBJECTIVE, "objective perturbation", VERMILION, "-", "^"),
    Line(regression.UNBOUNDED, "objective perturbation, wide", VERMILION, "--", "^"),
    Line(regression.ADASSP, "AdaSSP", GREEN, "-", "s"),
    Line(regression.PUBLISHED, "AdaSSP as published", GREEN, "--", "s"),
    Line(regression.SSP, "SSP", SKY, "--", "s"),
    Line(regression.ADAOPS, "AdaOPS", PURPLE, "-", "d"),
    Line(regression.OPS, "OPS", ORANGE, "--", "d"),
    Line(regression.AUTO, "auto", FAINT, "--", "x"),
    Line(regression.LEAST_SQUARES, "least squares, not private", INK, ":", ""),
)

_TITLES: Final = {
    "htru2": "htru2 (pulsars)",
    "occupancy": "occupancy",
    "cod_rna": "cod_rna",
    "kdd_http": "kdd_http",
    "shuttle": "shuttle",
    "mammography": "mammography",
    "airfoil": "airfoil",
    "naval_propulsion": "naval",
    "gas_drift_8batches": "gas",
    "protein_casp": "protein",
}


_JUDGES: Final = {
    "classification": classification_verdicts,
    "regression": regression_verdicts,
    "anomalies": anomaly_verdicts,
}


def write_report(output: Path) -> Path:
    """Draw the figures and fill in the page from the results in ``output``; returns the file."""
    subjects = {
        name: load_subject(output / "results" / f"{name}.json")
        for name in (*_JUDGES, "classification_paper", "regression_paper")
        if (output / "results" / f"{name}.json").is_file()
    }
    figures = output / "figures"
    figures.mkdir(exist_ok=True)
    parts = {}
    if subjects.keys() >= _JUDGES.keys():
        parts["verdicts"] = _verdict_table(subjects)
    own = {
        "classification": _classification_part,
        "regression": _regression_part,
        "anomalies": _anomalies_part,
    }
    for name, part in own.items():
        if name in subjects:
            parts[name] = f"{part(subjects[name], figures)}\n{made(subjects[name])}"
    for name, paper_part in (("classification", classification_part), ("regression", regression_part)):
        if f"{name}_paper" in subjects:
            parts |= paper_part(subjects[f"{name}_paper"], subjects.get(name), figures, _TITLES)
    return fill_page(HERE / "README.md", parts, output)


def _verdict_table(subjects: dict[str, Subject]) -> str:
    found: list[Verdict] = [
        each
        for name, subject in subjects.items()
        if name in _JUDGES and 1.0 in subject.epsilons
        for each in _JUDGES[name](subject)
    ]
    lines = ["| expected | holds | found |", "| --- | --- | --- |"]
    lines += [f"| {each.expected} | {'yes' if each.holds else '**no**'} | {each.found} |" for each in found]
    return "\n".join(lines)


def _classification_part(subject: Subject, figures: Path) -> str:
    draw_subject(
        subject,
        CLASSIFICATION_LINES,
        figures / "classification.png",
        y_label="balanced accuracy",
        titles=_TITLES,
        legend_rows=2,
    )
    methods = (
        classification.SKETCH,
        classification.ESTIMATOR,
        classification.GAUSSIAN,
        classification.EXACT,
        classification.PUBLIC,
        classification.LOGISTIC,
        classification.WIDE,
        classification.THRESHOLD,
    )
    return "\n".join([*_tables(subject, methods), _choices(subject)])


def _anomalies_part(subject: Subject, figures: Path) -> str:
    draw_subject(
        subject,
        ANOMALY_LINES,
        figures / "anomalies.png",
        y_label="area under the ROC curve",
        titles=_TITLES,
        limits=(0.76, 1.005),
    )
    methods = (
        anomalies.SKETCH,
        anomalies.ESTIMATOR,
        anomalies.EXACT,
        anomalies.PUBLIC,
        anomalies.ACE,
        anomalies.PRIVATE_ACE,
    )
    return "\n".join([*_tables(subject, methods), _choices(subject)])


def _regression_part(subject: Subject, figures: Path) -> str:
    draw_subject(
        subject,
        REGRESSION_LINES,
        figures / "regression.png",
        y_label="relative squared error",
        titles=_TITLES,
        columns=2,
        limits=(0.0, 1.5),
        legend_rows=4,
    )
    methods = (*regression.WAYS, regression.LEAST_SQUARES, regression.PUBLIC)
    return "\n".join(_tables(subject, methods))


def _tables(subject: Subject, methods: tuple[str, ...]) -> list[str]:
    parts = []
    for name, curves in subject.curves.items():
        parts.append(f"**{_TITLES[name]}**: {curves.records:,} records, {curves.features} columns\n")
        parts.append(curve_table(subject, name, methods) + "\n")
    return parts


def _choices(subject: Subject) -> str:
    rows = [[_TITLES[name], *usual_choices(curves)] for name, curves in subject.curves.items()]
    head = ["ε", *(f"{epsilon:g}" for epsilon in subject.epsilons)]
    return (
        "The usual choice on public records (scaling, power, bandwidth; in brackets, how many repetitions "
        f"made it):\n\n{markdown_table(head, rows)}\n"
    )
