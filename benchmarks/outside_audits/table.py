"""The committed table: JSON for programs, Markdown for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results" / "outside_audits.json"
TABLE = RESULTS.with_suffix(".md")
AUDITORS = ("jax-privacy", "privacy-estimates")
NOTE = (
    "Both bounds are given as jax-privacy / privacy-estimates. *Draws* are of each of two worlds. For "
    "bases, models and least squares by objective perturbation they are draws of the noise that one "
    "release states, by the library's sampler; elsewhere each is a release of its own. Rows with a few "
    "hundred draws are too weak to catch anything. The draws for `basis bernstein`, `basis "
    "fourier-series` and `PrivateRegressor, adassp` with pure ε, `private_quantiles`, `choose_kernel`, "
    "`FreshAnswers, laplace` and, with a rarer answer, `choose, logarithmic` at ε = 3 were raised after "
    "a first pass. That pass caught 13 copies fewer; for these rows the chance of a false alarm is that "
    "of two looks."
)


def best(bounds: dict[str, float]) -> float:
    """The larger of the two auditors' bounds."""
    return max(bounds.values())


def is_caught(row: dict[str, Any]) -> bool:
    """Whether one of the auditors shows that the copy breaks its claim."""
    return bool(best(row["copy"]) > row["epsilon"])


def keeps_claim(row: dict[str, Any]) -> bool:
    """Whether the copy is proven to keep the claim although it has less noise."""
    return bool(row.get("copy attains at most", float("inf")) <= row["epsilon"])


def summary(rows: list[dict[str, Any]]) -> str:
    """The result in a few sentences."""
    broken = sum(best(row["bound"]) > row["epsilon"] for row in rows)
    able = [row for row in rows if not keeps_claim(row)]
    ratio = sorted(best(row["bound"]) / row["epsilon"] for row in rows)[len(rows) // 2]
    return (
        f"{len(rows)} configurations. A lower bound exceeds the claim in {broken}; the copy with a fifth "
        f"less noise is caught in {sum(map(is_caught, able))} of {len(able)}"
        + (f", and keeps the claim in {len(rows) - len(able)} more" if len(able) < len(rows) else "")
        + f". The median of lower bound / claim is {ratio:.2f}."
    )


def write_table() -> None:
    """The Markdown from the JSON."""
    found = json.loads(RESULTS.read_text())
    about, rows = found["about"], found["rows"]
    lines = [
        "# Outside audits",
        "",
        "Written by `benchmarks/outside_audits/run.py`. "
        + ", ".join(f"{name} {value}" for name, value in about.items())
        + ".",
        "",
        summary(rows),
        "",
        NOTE,
        "",
        "| mechanism | neighbours | claim | draws | lower bound | / claim | copy | caught |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        claim = f"ε = {row['epsilon']:g}" + ("" if row["delta"] is None else f", δ = {row['delta']:g}")
        caught = "yes" if is_caught(row) else "keeps its claim" if keeps_claim(row) else "no"
        lines.append(
            f"| {row['name']} | {row['pair']} | {claim} | {row['releases']:,} | {_both(row['bound'])} | "
            f"{best(row['bound']) / row['epsilon']:.2f} | {_both(row['copy'])} | {caught} |"
        )
    TABLE.write_text("\n".join(lines) + "\n")


def _both(bounds: dict[str, float]) -> str:
    return " / ".join(f"{bounds[name]:.2f}" for name in AUDITORS)
