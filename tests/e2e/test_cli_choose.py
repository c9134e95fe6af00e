"""``hushsum choose``, and what ``hushsum tally`` says of parameters that smell."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.e2e.conftest import RECORDS, QuickShell

COLUMNS = ("--columns", "a,b")
SEED = ("--insecure-noise-seed", "1")


def test_bounds_for_every_column(quick: QuickShell) -> None:
    ended = quick.ok(
        "choose", "bounds", "ok.csv", *COLUMNS, "--within=-50:50", "--epsilon", "4", *SEED, "--json"
    )
    found = ended.json
    assert [each["column"] for each in found["bounds"]] == ["a", "b"]
    (low, high), (below, above) = ((each["low"], each["high"]) for each in found["bounds"])
    assert -4 < low < 0 < 2 < high < 6
    assert -5 < below < -2.5 < -1.5 < above < 1
    assert found["claim"]["epsilon"] == 4.0
    assert str(RECORDS) not in ended.text


def test_bounds_in_words_can_be_copied(quick: QuickShell) -> None:
    text = quick.ok("choose", "bounds", "ok.csv", *COLUMNS, "--within=-50:50", "--epsilon", "4", *SEED).text
    option = next(line.split("--bounds ")[1] for line in text.splitlines() if "--bounds" in line)
    quick.ok(
        "tally", "ok.csv", *COLUMNS, "--bandwidth", "1", f"--bounds={option}", "--rows", "5", "-o", "n.tally"
    )


def test_a_bandwidth(quick: QuickShell) -> None:
    chosen = quick.ok(
        *("choose", "bandwidth", "ok.csv", *COLUMNS, "--candidates", "0.01,1,100"),
        *("--density", "0.4", "--epsilon", "4", "--json"),
    ).json
    assert chosen["kernel"]["parameters"]["bandwidth"] == 1.0


def test_persons(quick: QuickShell) -> None:
    rows = np.random.default_rng(3).normal(size=900)
    lines = [f"p{i % 300},{value}" for i, value in enumerate(rows)]
    (quick.folder / "who.csv").write_text("who,a\n" + "\n".join(lines) + "\n")
    claim = quick.ok(
        *("choose", "bounds", "who.csv", "--columns", "a", "--unit-column", "who", "--max-per-unit", "2"),
        *("--within=-9:9", "--epsilon", "1", "--relation", "replace", "--json"),
    ).json["claim"]
    assert (claim["unit"], claim["records_per_unit"], claim["relation"]) == ("person", 2, "replace")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("rows", "ok.csv"), 2),
        (("bounds", "ok.csv"), 2),
        (("bounds", "missing.csv", "--within", "0:1"), 2),
        (("bounds", "ok.csv", "--within", "0:1", "--max-per-unit", "2"), 2),
        (("bounds", "ok.csv", "ok.csv", "--within", "0:1"), 2),
        (("bandwidth", "ok.csv"), 2),
        (("bandwidth", "ok.csv", "--candidates", "1,-1"), 2),
        (("bandwidth", "ok.csv", "--candidates", "1,2", "--kernel", "jaccard"), 2),
    ],
)
def test_refusals_are_one_sentence(quick: QuickShell, arguments: tuple[str, ...], code: int) -> None:
    ended = quick.run("choose", *arguments, "--epsilon", "1")
    assert ended.code == code
    assert ended.out == b""
    assert len(ended.err.strip().splitlines()) == 1


def test_a_wrong_epsilon_is_told_before_the_file_is_read(quick: QuickShell) -> None:
    ended = quick.run("choose", "bounds", "missing.csv", "--within", "0:1", "--epsilon", "0")
    assert ended.code == 2
    assert "epsilon" in ended.err


def test_a_bound_read_off_the_file_is_told_on_standard_error_only(quick: QuickShell) -> None:
    values = np.loadtxt(quick.folder / "ok.csv", delimiter=",", skiprows=1)[:, 0]
    tally = (
        "tally",
        "ok.csv",
        "--columns",
        "a",
        "--bandwidth",
        "1",
        "--rows",
        "5",
        "--json",
        "-o",
        "n.tally",
    )
    smelly = quick.ok(*tally, f"--bounds={float(values.min())!r}:{float(values.max())!r}")
    assert smelly.err.count("WARNING") == 2
    assert "SuspiciousParameter" not in smelly.err
    assert f"{values.min():.3f}" not in smelly.err
    described = {name: value for name, value in smelly.json.items() if name != "warning"}
    assert "warning" not in json.dumps(described).lower(), "it is the same for all tallies"
    assert "WARNING" not in quick.ok(*tally, "--bounds=-10:10").err
