"""README.md of the reproduction: figures, tables and verdicts from the JSON results."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from papers.pages import fill_page
from papers.private_race import anomalies, classification, regression
from papers.private_race.curves import Subject, load_subject
from papers.private_race.drawing import GREEN, ORANGE, PURPLE, SKY, Line, draw_subject
from papers.private_race.paper_report import classification_part, made, regression_part
from papers.private_race.tables import curve_table, markdown_table, usual_choices
from papers.private_race.verdicts import (
    Verdict,
    anomaly_verdicts,
    classification_verdicts,
    regression_verdicts,
)

from hushsum.plotting import BLUE, FAINT, INK, VERMILION

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
