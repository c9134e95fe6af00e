"""``hushsum benchmark``: a table for public data, one sentence for private data."""

from __future__ import annotations

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
        *("benchmark", "ok.csv", "--public", *COMMON, "--methods", "grid,kme", "--delta", "1e-6", "--json"),
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
