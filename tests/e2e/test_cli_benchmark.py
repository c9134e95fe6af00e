"""``hushsum benchmark``: a table for public data, one sentence for private data."""

from __future__ import annotations

import pytest
from tests.e2e.conftest import QuickShell

COMMON = ("--epsilon", "0.5,2", "--bandwidth", "0.5", "--bounds=-6:6", "--columns", "a", "--repeats", "1")


def test_without_the_word_public_nothing_is_compared(quick: QuickShell) -> None:
    sentence = quick.refused(2, "benchmark", "ok.csv", *COMMON)
    assert "--public" in sentence
    assert "hushsum plan" in sentence


def test_a_table_and_its_json(quick: QuickShell) -> None:
    table = quick.ok(
        "benchmark", "ok.csv", "--public", *COMMON, "--methods", "auto,histogram", "--queries", "50"
    )
    for word in ("auto", "histogram", "predicted", "exact sums", "scikit-learn", "would be a leak"):
        assert word in table.text
    document = quick.ok(
        *("benchmark", "ok.csv", "--public", *COMMON, "--methods", "grid,kme", "--delta", "1e-6", "--json")
    ).json
    assert {(each["method"], each["epsilon"]) for each in document["methods"]} == {
        ("grid", 0.5),
        ("grid", 2.0),
        ("kme", 0.5),
        ("kme", 2.0),
    }
    assert {each["relation"] for each in document["methods"]} == {"add/remove", "replace"}


def test_refusals_are_one_sentence(quick: QuickShell) -> None:
    assert "must be one of" in quick.refused(
        2, "benchmark", "ok.csv", "--public", *COMMON, "--methods", "magic"
    )
    assert "missing.csv" in quick.refused(2, "benchmark", "missing.csv", "--public", *COMMON)


def test_files_are_read_as_declared(quick: QuickShell) -> None:
    """A German export: semicolons, decimal commas, dates, another encoding, and a missing value."""
    lines = [f"{1 + i % 28:02d}.03.2024;{i % 7},5;Köln" for i in range(300)] + ["01.03.2024;;Köln"]
    (quick.folder / "besuche.csv").write_bytes("\r\n".join(["Tag;Größe;Ort", *lines, ""]).encode("cp1252"))
    terms = ("--public", "--epsilon", "1", "--bandwidth", "2", "--repeats", "1", "--methods", "grid")
    plain = ("benchmark", "besuche.csv", *terms, "--columns", "Tag,Größe", "--encoding", "windows-1252")
    bounds = ("--bounds", "2024-03-01:2024-03-31,0:10", "--queries", "20")
    dates = ("--dates", "Tag", "--date-format", "%d.%m.%Y")
    assert "--decimal" in quick.refused(6, *plain, *dates, *bounds)
    assert "--drop-missing" in quick.refused(6, *plain, *dates, *bounds, "--decimal", ",")
    measured = quick.ok(*plain, *dates, *bounds, "--decimal", ",", "--drop-missing", "--json").json
    assert measured["records"] == 300


def test_the_kernel_is_that_of_release_for_the_same_options(quick: QuickShell) -> None:
    """Ranges that differ by more than ten times make the bandwidth a fraction of each."""
    rows = [f"{i % 97 / 97},{i % 89 * 3000}" for i in range(500)]
    (quick.folder / "people.csv").write_text("\n".join(["age,pay", *rows, ""]))
    box = ("people.csv", "--columns", "age,pay", "--bounds", "0:1,0:300000", "--epsilon", "1")
    for given in (("--bandwidth", "0.1"), ("--bandwidth", "0.2", "--scale", "bounds"), MATERN):
        quick.ok("release", *box, *given, "-o", "x.hush")
        released = quick.ok("show", "x.hush", "--json").json["kernel"]
        few = ("--methods", "grid", "--repeats", "1", "--queries", "20", "--json")
        measured = quick.ok("benchmark", *box, *given, "--public", *few).json
        assert measured["kernel"] == released
        assert measured["methods"][0]["relative"] < 0.5, "149 % is what another kernel shows"


MATERN = ("--kernel", "matern", "--smoothness", "1.5", "--bandwidth", "0.1")


def test_without_a_terminal_a_line_says_how_far_it_is(
    quick: QuickShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ("benchmark", "ok.csv", "--public", *COMMON, "--methods", "grid", "--queries", "20", "--json")
    assert quick.ok(*few).err == "", "short work says nothing"
    monkeypatch.setattr("hushsum.cli.output._SECONDS_OF_A_LINE", 0.0)
    lines = quick.ok(*few).err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "benchmarking: 0%",
        "benchmarking: 50%",
        "benchmarking: 50%",
        "benchmarking: 100%",
    ]
    assert "2357" not in " ".join(lines), "never a number of records"
