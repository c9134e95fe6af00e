"""``hushsum page`` and ``hushsum heatmap`` as commands."""

from __future__ import annotations

import json

from tests.e2e.cli_process import Shell
from tests.e2e.conftest import RECORDS
from tests.shown_numbers import shows_number

MAP = ("--columns", "a,b", "--bounds", "-4:6,-5:2", "--bandwidth", "0.5", "--plane")


def test_a_page_of_a_function(shell: Shell) -> None:
    assert shell.ok("page", "one.hush", "-o", "one.html").out == b"one.html\n"
    text = (shell.folder / "one.html").read_text()
    assert "Content-Security-Policy" in text
    assert "e^1 times as likely" in text
    said = json.loads(shell.ok("page", "one.hush", "-o", "one.html", "--title", "Ages", "--json").out)
    assert said["bytes"] == (shell.folder / "one.html").stat().st_size
    assert "<title>Ages</title>" in (shell.folder / "one.html").read_text()
    # A fresh noisy count is the true one now and then; this seed's is not.
    shell.ok("release", "one.tally", "--epsilon", "1", "--insecure-noise-seed", "1", "-o", "seeded.hush")
    shell.ok("page", "seeded.hush", "-o", "seeded.html")
    assert not shows_number((shell.folder / "seeded.html").read_text(), RECORDS)
    shell.ok("page", "ok.hush", "-o", "ok.html", "--range", "-4:4,-5:1", "--labels", "x,y", "--mean")


def test_pages_that_are_refused(shell: Shell) -> None:
    assert "must end in one of .html" in shell.refused(2, "page", "one.hush", "-o", "one.pdf")
    assert "without bounds" in shell.refused(2, "page", "ok.hush", "-o", "ok.html")
    assert "confidential tally" in shell.refused(5, "page", "ok.tally", "-o", "ok.html")
    assert "no file" in shell.refused(2, "page", "none.hush", "-o", "none.html")
    assert "ok.csv is not a released function" in shell.refused(5, "page", "ok.csv", "-o", "ok.html")
    assert "one for each of 2 columns" in shell.refused(
        2, "page", "ok.hush", "-o", "ok.html", "--range", "0:1,0:1,0:1"
    )


def test_a_map_and_further_maps_of_the_same_release(shell: Shell) -> None:
    outputs = ("-o", "map.html", "-o", "map.tif", "-o", "map.geojson")
    said = shell.ok("heatmap", "ok.csv", *MAP, "--epsilon", "1", *outputs, "--size", "32")
    assert b"map.hush" in said.out
    assert not shows_number(said.text, RECORDS)
    released = (shell.folder / "map.hush").read_bytes()
    again = json.loads(
        shell.ok("heatmap", "map.hush", "--plane", "-o", "map.png", "--size", "32", "--json").out
    )
    assert again["outputs"] == ["map.png"]
    assert (shell.folder / "map.hush").read_bytes() == released


def test_an_adaptive_map(shell: Shell) -> None:
    command = ("heatmap", "ok.csv", *MAP, "--epsilon", "1", "--adaptive", "--size", "32")
    sentence = shell.refused(2, *command, "-o", "fine.html")
    assert "boxes of unequal size" in sentence
    assert not (shell.folder / "fine.hush").exists()
    shell.ok(*command, "-o", "fine.png", "-o", "fine.geojson")
    shell.ok("heatmap", "fine.hush", "--plane", "-o", "again.tif", "--size", "32")


def test_a_map_is_booked_once(shell: Shell) -> None:
    book = ("--ledger", "ledger.db", "--dataset", "town")
    shell.ok("ledger", "init", *book, "--epsilon", "1")
    command = ("heatmap", "ok.csv", *MAP, "--epsilon", "0.75", "-o", "map.html", *book, "--json")
    first = json.loads(shell.ok(*command).out)
    second = json.loads(shell.ok(*command).out)
    assert first["claim"]["epsilon"] == second["claim"]["epsilon"] == 0.75
    sentence = shell.refused(3, "heatmap", "ok.csv", *MAP, "--epsilon", "0.5", "-o", "other.html", *book)
    assert "town" in sentence


def test_maps_that_are_refused(shell: Shell) -> None:
    spent = ("--epsilon", "1")
    city = ("--columns", "a,b", "--bounds", "2.2:2.5,48.8:48.9", "--bandwidth", "1")
    sentence = shell.refused(2, "heatmap", "ok.csv", *city, *spent, "-o", "map.html")
    assert sentence.endswith("give a larger --bandwidth or narrower --bounds")
    assert "must end in one of" in shell.refused(2, "heatmap", "ok.csv", *MAP, *spent, "-o", "map.jpg")
    assert "bandwidth" in shell.refused(
        2, "heatmap", "ok.csv", "--columns", "a,b", "--bounds", "-4:6,-5:2", *spent, "-o", "map.html"
    )
    assert "--bounds" in shell.refused(
        2, "heatmap", "ok.csv", "--columns", "a,b", "--bandwidth", "1", *spent, "-o", "map.html"
    )
    assert "finite integral" in shell.refused(2, "heatmap", "one.hush", "--plane", "-o", "map.png")
    assert "--epsilon" in shell.refused(2, "heatmap", "one.hush", *spent, "-o", "map.png")
    assert "longitudes" in shell.refused(
        2,
        "heatmap",
        "ok.csv",
        "--columns",
        "a,b",
        "--bounds",
        "-4:6,-95:2",
        "--bandwidth",
        "100",
        *spent,
        "-o",
        "m.html",
    )
