"""What was expected of the experiments, and whether the numbers bear it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from papers.private_race import anomalies, classification, regression
from papers.private_race.curves import Subject


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
