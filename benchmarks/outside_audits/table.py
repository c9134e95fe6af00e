"""The table of outside audits, as it is written and read."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.writer import Results

RESULTS = Results("outside_audits")
AUDITORS = ("jax-privacy", "privacy-estimates")
NOTE = (
    "Both bounds are given as jax-privacy / privacy-estimates. *Draws* are of each of two worlds. For "
    "bases, models and least squares by objective perturbation they are draws of the noise that one "
    "release states, by the library's sampler; elsewhere each is a release of its own. Rows with a few "
    "hundred draws are too weak to catch anything. The draws for `basis bernstein`, `basis "
    "fourier-series` and `PrivateRegressor, adassp` with pure ε, `private_quantiles`, `choose_kernel`, "
    "`FreshAnswers, laplace` and, with a rarer answer, `choose, logarithmic` at ε = 3 were raised after "
    "a first pass. That pass caught 13 copies fewer; for these rows the probability of a false alarm is that "
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


def published_rows() -> list[dict[str, Any]]:
    """The rows of the committed table, with numbers as they are shown."""
    rows = []
    for line in RESULTS.table.read_text(encoding="utf-8").splitlines():
        cells = [each.strip() for each in line.split("|")[1:-1]]
        claim = re.fullmatch(r"ε = ([\d.]+)(?:, δ = ([\d.e-]+))?", cells[2]) if len(cells) == 8 else None
        if claim is not None:
            name, pair, _, draws, bound, _, copy, caught = cells
            epsilon, delta = float(claim[1]), None if claim[2] is None else float(claim[2])
            row: dict[str, Any] = {"name": name, "pair": pair, "epsilon": epsilon, "delta": delta}
            row |= {"releases": int(draws.replace(",", "")), "bound": _read(bound), "copy": _read(copy)}
            rows.append(row | ({"copy attains at most": epsilon} if caught == "keeps its claim" else {}))
    return rows


def _read(bounds: str) -> dict[str, float]:
    return dict(zip(AUDITORS, map(float, bounds.split(" / ")), strict=True))


def write_table(about: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Write it."""
    lines = [
        "# Outside audits",
        "",
        ", ".join(f"{name} {value}" for name, value in about.items()) + ".",
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
    RESULTS.publish("\n".join(lines))


def _both(bounds: dict[str, float]) -> str:
    return " / ".join(f"{bounds[name]:.2f}" for name in AUDITORS)
