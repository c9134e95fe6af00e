"""README.md of the reproduction: figures, tables and verdicts from the JSON results."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from papers.private_race import anomalies, classification, regression
from papers.private_race.figures import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Line,
    draw_subject,
)
from papers.private_race.results import Subject, load_subject
from papers.private_race.tables import curve_table, markdown_table, usual_choices
from papers.private_race.verdicts import (
    Verdict,
    anomaly_verdicts,
    classification_verdicts,
    regression_verdicts,
)

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
    Line(regression.OBJECTIVE, "objective perturbation", VERMILION, "-", "^"),
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

_OPENING = """\
# Private RACE, run again

Coleman and Shrivastava, *A one-pass distributed and private sketch for kernel sums with applications to machine
learning at scale* (CCS 2021), section 5: the sketch as a classifier (figure 4), as a regression (figure 5), and
as a density (figure 2) that tells anomalies. Every file here but this text's own words is made by

```
export HUSHSUM_DATA=…            # a folder with the parquet files named below
python -m papers.private_race.run all            # or: classification, regression, anomalies, densities
python -m papers.private_race.run all --quick    # two repetitions and three budgets, into build/
python -m papers.private_race.run report         # tables and pictures again, from the JSON alone
```

Numbers are means over {repetitions} repetitions, each with its own split, hash functions and noise, ± one standard
error. Everything measured is in [`results/`](results).
"""

_RULES = """\
## Rules of the experiments

- **Splits.** Each repetition takes 5 % of the records as *public*, 20 % as the test set, and the rest as private.
- **Public choices.** Bounds, scaling, power and bandwidth come from the public records, never from private or test
  ones, and no choice is made after a private result was seen. The bandwidth depends on the noise, so candidates are
  tried on folds of the n public records at ε·N/n, which has the noise that N private records have at ε. N is taken as
  declared. The published bandwidths were fixed by hand.
- **The public records alone** are a baseline too, and a strong one: a reader who has 5 % of the data in the open may not
  need the rest. The tables show what they give without any privacy cost.
- **Baselines** are tuned on the test set, which favours them: the regularisation of the logistic regression, and in
  one variant its threshold.
- **Claims.** A sketch's ε is for one record present or absent, discrete Laplace noise on integers, one tally per class
  (a record is in one class: parallel composition). Objective perturbation as published is for one record *replaced* with
  a public size; in that relation the sketch's curve at ε is a curve at 2ε. Nothing here is a release: the data are
  public.
- **Data.** htru2 (the paper's pulsar), occupancy, cod_rna in place of nomao; airfoil, naval_propulsion,
  gas_drift_8batches (target: concentration) and protein_casp; kdd_http, shuttle and mammography.
"""

_DENSITIES = """\
## Densities (figure 2)

![exact, sketched and released densities](figures/densities.png)

Temperature and carbon dioxide of the occupancy records. The sketch is constant on the cells of random partitions, which
shows as straight edges; noise moves whole cells, which shows first where the density is thin. Values below 0 have the
colour of 0.
"""

_CLASSIFICATION = """\
## Classification (figure 4)

![balanced accuracy against ε](figures/classification.png)

The maximum-likelihood rule: the class whose sketch answers the largest mean kernel value. Balanced accuracy, because
pulsars are 9 % of htru2. Candidates: columns in a public box or whitened by the public covariance, powers 4 and 8, three
bandwidths each. The number of rows is the library's `"auto"`. `PrivateClassifier.predict` is the same release read by
the estimator, which stays silent (the first class) where its private counts cannot be told from noise.
"""

_ANOMALIES = """\
## Anomalies

![area under the ROC curve against ε](figures/anomalies.png)

The sketch is filled with all private records, anomalies among them, unlabelled; a low answer tells an anomaly. ACE (Luo
and Shrivastava, WWW 2018; K = 15 bits, L = 50 arrays) is the same kind of sketch with the angular kernel; its private
variant is a release of that tally with the same noise. Both see the same scaled columns, ACE centred at the public
mean. The test set is all its anomalies and up to 1,000 of its normal records.
"""

_REGRESSION = """\
## Regression (figure 5)

![relative squared error against ε](figures/regression.png)

Squared error on the test set, divided by that of the constant that predicts the public mean: 1 is as good as knowing
nothing. AdaSSP, SSP, AdaOPS and auto are (ε, δ = 1e-6); the sketch (unless it says otherwise), OPS and objective perturbation
are pure ε. Columns are bounded at the public mean ± 3 standard deviations, records shortened to a public radius. The
sketch has 4 signed random projections a row (W = 16), as published.
"""


def write_report(output: Path) -> Path:
    """Draw the figures and write README.md from the results in ``output``; returns the file."""
    subjects = {
        name: load_subject(output / "results" / f"{name}.json")
        for name in ("classification", "regression", "anomalies")
        if (output / "results" / f"{name}.json").is_file()
    }
    figures = output / "figures"
    figures.mkdir(exist_ok=True)
    parts = [_OPENING.format(repetitions=_repetitions(subjects)), _verdict_table(subjects), _RULES]
    if (figures / "densities.png").is_file():
        parts.append(_DENSITIES)
    if "classification" in subjects:
        parts.append(_classification_part(subjects["classification"], figures))
    if "regression" in subjects:
        parts.append(_regression_part(subjects["regression"], figures))
    if "anomalies" in subjects:
        parts.append(_anomalies_part(subjects["anomalies"], figures))
    parts.append(_times(subjects))
    file = output / "README.md"
    file.write_text("\n".join(parts), encoding="utf-8")
    return file


def _repetitions(subjects: dict[str, Subject]) -> int:
    return max((each.settings.repetitions for each in subjects.values()), default=0)


def _verdict_table(subjects: dict[str, Subject]) -> str:
    judges = {
        "classification": classification_verdicts,
        "regression": regression_verdicts,
        "anomalies": anomaly_verdicts,
    }
    found: list[Verdict] = [
        each
        for name, subject in subjects.items()
        if 1.0 in subject.epsilons
        for each in judges[name](subject)
    ]
    lines = [
        "## What was expected, and what was found",
        "",
        "| expected | holds | found |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {each.expected} | {'yes' if each.holds else '**no**'} | {each.found} |" for each in found]
    return "\n".join([*lines, ""])


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
    return "\n".join([_CLASSIFICATION, *_tables(subject, methods), _choices(subject)])


def _anomalies_part(subject: Subject, figures: Path) -> str:
    draw_subject(
        subject,
        ANOMALY_LINES,
        figures / "anomalies.png",
        y_label="area under the ROC curve",
        titles=_TITLES,
    )
    methods = (
        anomalies.SKETCH,
        anomalies.EXACT,
        anomalies.PUBLIC,
        anomalies.ACE,
        anomalies.PRIVATE_ACE,
    )
    return "\n".join([_ANOMALIES, *_tables(subject, methods), _choices(subject)])


def _regression_part(subject: Subject, figures: Path) -> str:
    draw_subject(
        subject,
        REGRESSION_LINES,
        figures / "regression.png",
        y_label="relative squared error",
        titles=_TITLES,
        logarithmic=True,
        legend_rows=2,
    )
    methods = (*regression.WAYS, regression.LEAST_SQUARES, regression.PUBLIC)
    return "\n".join([_REGRESSION, *_tables(subject, methods)])


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
        "The usual choice on public records (scaling, power, bandwidth; in brackets, how many repetitions made "
        f"it):\n\n{markdown_table(head, rows)}\n"
    )


def _times(subjects: dict[str, Subject]) -> str:
    spent = "; ".join(f"{name} {each.seconds / 60.0:.0f} minutes" for name, each in subjects.items())
    return f"## Time\n\nProcessor time of the whole run, exact kernel sums included: {spent}.\n"
