from __future__ import annotations

import csv
import io
import secrets
import stat
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.e2e.cli_process import Shell, environment
from tests.e2e.conftest import RECORDS, QuickShell
from tests.exact_tallies import exact_state, exact_table

import hushsum as hs

COMMANDS = ("demo", "plan", "tally", "merge", "release", "query", "show", "plot")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help(shell: Shell, command: tuple[str, ...]) -> None:
    text = shell.ok(*command, "--help").text
    assert "Usage: hushsum" in text
    assert "bool" not in text
    if not command:
        assert all(name in text for name in COMMANDS)
        assert shell.ok("--version").text == f"hushsum {hs.__version__}\n"


def test_shell_completion(shell: Shell) -> None:
    def completed(words: str) -> set[str]:
        place = str(len(words.split()) - 1)
        return set(
            shell.run(_HUSHSUM_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place).text.split()
        )

    assert completed("hushsum pl") == {"plan", "plot"}
    assert completed("hushsum tally --kernel ha") == {"hamming"}
    assert completed("hushsum tally --projection s") == {"structured"}
    assert completed("hushsum release --relation r") == {"replace"}
    assert completed("hushsum query --estimator m") == {"mean", "median-of-means"}


def test_tally_agrees_with_the_library(shell: Shell) -> None:
    written = shell.ok(
        *("tally", "ok.csv", "--columns", "b,a", "--kernel", "manhattan", "--bandwidth", "2", "--power", "2"),
        *("--rows", "30", "--width", "50", "--seed", "9", "--bounds", "-4:4,-3:3", "--json", "-o", "x.tally"),
    ).json
    kernel = hs.ManhattanKernel(dim=2, bandwidth=2.0, power=2)
    expected = hs.race(kernel, rows=30, width=50, seed=9, bounds=[(-4, 4), (-3, 3)], columns=["b", "a"])
    points = np.loadtxt(shell.folder / "ok.csv", delimiter=",", skiprows=1)
    expected.add(points[:, ::-1])
    loaded = hs.load_tally(shell.folder / "x.tally")
    assert written["fingerprint"] == loaded.fingerprint == expected.fingerprint
    np.testing.assert_array_equal(exact_table(loaded), exact_table(expected))
    assert stat.S_IMODE((shell.folder / "x.tally").stat().st_mode) & 0o077 == 0


def test_several_files_count_as_one(quick: QuickShell) -> None:
    lines = (quick.folder / "ok.csv").read_text().splitlines(keepends=True)
    (quick.folder / "front.csv").write_text("".join(lines[:100]))
    columns = np.loadtxt(lines[100:], delimiter=",")
    table = pa.table({"b": columns[:, 1], "c": columns[:, 0], "a": columns[:, 0]})
    pa.parquet.write_table(table, quick.folder / "back.parquet")
    small = ("--bandwidth", "1", "--rows", "120", "--width", "200")
    quick.ok("tally", "front.csv", "back.parquet", *small, "-o", "both.tally")
    both, whole = (exact_state(hs.load_tally(quick.folder / name)) for name in ("both.tally", "ok.tally"))
    np.testing.assert_array_equal(both["table"], whole["table"])
    assert both["count"] == whole["count"]


def test_pipes(shell: Shell) -> None:
    small = ("--bandwidth", "1", "--rows", "120", "--width", "200")
    shell.ok("tally", "-", *small, "-o", "piped.tally", stdin=(shell.folder / "ok.csv").read_bytes())
    piped, whole = (exact_state(hs.load_tally(shell.folder / name)) for name in ("piped.tally", "ok.tally"))
    np.testing.assert_array_equal(piped["table"], whole["table"])
    function = shell.ok("release", "piped.tally", "--rho", "0.5", "-o", "-").out
    answers = shell.ok("query", "-", "--at", "1,-2", "--json", stdin=function).json["answers"]
    assert 0.1 < answers[0]["value"] < 1.0
    assert "zero-concentrated" in shell.ok("show", "-", stdin=function).text
    points = shell.ok("query", "ok.hush", "--points", "-", stdin=b"a,b\n1,-2\n").text
    assert points.startswith("a,b,value,stderr,lower,upper\n1,-2,")


def test_merge_and_release_of_persons(quick: QuickShell) -> None:
    for name, first in (("p", 0), ("q", 50)):
        ids = [f"{name if first else 'p'}{i % 40}" for i in range(first, first + 80)]
        table = pa.table({"a": np.arange(80.0), "who": ids})
        pa.parquet.write_table(table, quick.folder / f"{name}.parquet")
        quick.ok(
            *("tally", f"{name}.parquet", "--columns", "a", "--bandwidth", "5", "--rows", "20"),
            *("--unit-column", "who", "--max-per-unit", "1", "-o", f"{name}.tally"),
        )
    added = quick.ok("merge", "p.tally", "q.tally", "-o", "sum.tally", "--json").json
    apart = quick.ok("merge", "p.tally", "q.tally", "--disjoint-units", "-o", "apart.tally", "--json").json
    assert (added["unit"], added["max_per_unit"], apart["max_per_unit"]) == ("person", 2, 1)
    claim = quick.ok("release", "sum.tally", "--epsilon", "0.5", "-o", "sum.hush", "--json").json["claim"]
    assert (claim["epsilon"], claim["unit"], claim["records_per_unit"]) == (0.5, "person", 2)
    assert "one person (with up to 2 records)" in quick.ok("show", "sum.hush").text


def test_claims_in_json_are_numbers(quick: QuickShell) -> None:
    reported = [
        quick.ok(
            "release", "one.tally", "--epsilon", "0.1", "--delta", "1e-6", "-o", "d.hush", "--json"
        ).json,
        quick.ok("show", "d.hush", "--json").json,
    ]
    for each in reported:
        claim = each["claim"]
        assert (claim["epsilon"], claim["delta"], claim["rho"]) == (0.1, 1e-6, None)
        assert claim["exact"] == {"epsilon": "1/10", "delta": "1/1000000", "rho": None}


def test_a_summary_tells_columns_and_bounds(quick: QuickShell) -> None:
    text = quick.ok(
        *("tally", "ok.csv", "--columns", "b, a", "--bandwidth", "1", "--rows", "20"),
        *("--bounds", "-5:5,0:3", "-o", "x.tally"),
    ).text
    assert "columns      b, a\n" in text
    assert "bounds       -5:5, 0:3\n" in text


def test_a_grid_from_records_to_a_picture(quick: QuickShell) -> None:
    reported = quick.ok(
        *("tally", "ok.csv", "--columns", "a,b", "--method", "grid", "--kernel", "gaussian"),
        *("--bandwidth", "0.5", "--bounds", "-5:5", "--spacing", "0.6", "-o", "g.tally"),
    ).text
    assert "grid-weights, 39 × 39" in reported
    quick.ok("release", "g.tally", "--epsilon", "1", "-o", "g.hush")
    assert "grid-weights" in quick.ok("show", "g.hush").text
    assert '"stderr"' in quick.ok("query", "g.hush", "--at", "0,0", "--json").text
    quick.ok("plot", "g.hush", "-o", "g.png")
    assert "--estimator must be mean" in quick.refused(
        2, "query", "g.hush", "--at", "0,0", "--estimator", "median-of-means"
    )


def test_a_declared_population_allows_its_delta(quick: QuickShell) -> None:
    large = ("release", "one.tally", "--epsilon", "1", "--delta", "1e-4", "-o", "x.hush")
    assert "at most 1e-05" in quick.refused(2, *large)
    assert "5e-05" in quick.refused(2, *large, "--population", "2000")
    quick.ok(*large, "--population", "900")
    quick.ok(*large, "--allow-large-delta")


def test_poor_releases_are_warned_of(quick: QuickShell) -> None:
    loud = quick.ok("release", "one.tally", "--epsilon", "11", "-o", "x.hush")
    assert loud.err.startswith("WARNING: ε = 11 promises little")
    assert loud.err.count("\n") == 1
    # 2357 records at ε = 0.001 are worth a row or two, whatever the noise.
    faint = quick.ok("release", "one.tally", "--epsilon", "0.001", "-o", "x.hush", "--json")
    assert f"only {faint.json['rows']} of 120 rows are published" in faint.err
    assert quick.ok("release", "one.tally", "--epsilon", "1", "--rows", "5", "-o", "x.hush").err == ""


def test_sets(shell: Shell) -> None:
    (shell.folder / "sets.csv").write_text("basket\n" + "1 5 9\n" * 300 + "2;4\n" * 300)
    kind = ("--kernel", "jaccard", "--rows", "100")
    shell.ok("tally", "sets.csv", "--set-column", "basket", *kind, "-o", "s.tally")
    shell.ok("release", "s.tally", "--epsilon", "4", "-o", "s.hush")
    hit, miss = shell.ok("query", "s.hush", "--at", "1,5,9", "--at", "7", "--json").json["answers"]
    assert hit["at"] == [1, 5, 9]
    for spelling in ("1 5 9", "1;5;9"):
        assert shell.ok("query", "s.hush", "--at", spelling, "--json").json["answers"] == [hit]
    assert "members of a set" in shell.refused(2, "query", "s.hush", "--at", "one")
    assert hit["value"] > 0.4 > 0.1 > miss["value"]
    rows = list(csv.DictReader(io.StringIO(shell.ok("query", "s.hush", "--points", "sets.csv").text)))
    assert len(rows) == 600
    assert rows[0]["basket"] == "1 5 9"
    assert float(rows[0]["value"]) == hit["value"]


def test_embeddings_in_one_column(quick: QuickShell) -> None:
    random = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(random.standard_normal(6 * 50), 6)
    pa.parquet.write_table(pa.table({"v": vectors}), quick.folder / "v.parquet")
    written = quick.ok(
        *(
            "tally",
            "v.parquet",
            "--kernel",
            "angular",
            "--bits",
            "3",
            "--rows",
            "10",
            "--json",
            "-o",
            "v.tally",
        )
    ).json
    assert written["kernel"]["parameters"]["dim"] == 6
    assert written["width"] == 8


def test_query_of_points_equals_query_at(quick: QuickShell) -> None:
    (quick.folder / "q.csv").write_text("note,b,a\n7,-2,1\n7,0,0\n")
    text = quick.ok("query", "ok.hush", "--points", "q.csv", "--columns", "a,b", "--sum").text
    rows = list(csv.DictReader(io.StringIO(text)))
    at = quick.ok("query", "ok.hush", "--at", "1,-2", "--at", "0,0", "--sum", "--json").json["answers"]
    streamed = quick.ok(
        *("query", "ok.hush", "--points", "q.csv", "--columns", "a,b", "--sum", "--json")
    ).json["answers"]
    assert streamed == at
    for row, answer in zip(rows, at, strict=True):
        assert [float(row["a"]), float(row["b"])] == answer["at"]
        assert all(float(row[name]) == answer[name] for name in ("value", "stderr", "lower", "upper"))
    table = quick.ok("query", "ok.hush", "--at", "1,-2", "--sum").text
    assert all(word in table for word in ("1,-2", "value", "stderr", "lower", "upper"))


def test_median_of_means_has_a_bound_and_no_standard_error(shell: Shell) -> None:
    (answer,) = shell.ok(
        "query", "ok.hush", "--at", "1,-2", "--sum", "--estimator", "median-of-means", "--json"
    ).json["answers"]
    f = hs.load(shell.folder / "ok.hush")
    assert answer["stderr"] is None
    assert answer["value"] == f.sum([[1.0, -2.0]], estimator="median-of-means")[0]  # type: ignore[call-arg]
    assert answer["lower"] < answer["value"] < answer["upper"]


def test_a_small_relative_error_is_not_shown_as_none(quick: QuickShell) -> None:
    sizes = ("--records", "100000000", "--dim", "1", "--bandwidth", "5", "--bounds", "0:100")
    text = quick.ok("plan", *sizes, "--epsilon", "1").text
    assert "%" in text
    assert " 0.0%" not in text


def test_plan(quick: QuickShell) -> None:
    requested = ("plan", "--records", "241000", "--dim", "3", "--epsilon", "1", "--bandwidth", "5")
    made = quick.ok(*requested, "--rows", "100,200", "--json").json
    best = [option for option in made["options"] if option["best"]]
    assert [(option["rows"], option["mechanism"]) for option in best] == [(200, "discrete laplace")]
    text = quick.ok(*requested, "--kernel", "euclidean").text
    assert sum(line.startswith("*") for line in text.splitlines()) == 1
    assert "δ 1e-6" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("  hushsum")) <= 80
    assert "At mean kernel value 0.1 the error of * is" in text
    assert "At mean kernel value" not in quick.ok(*requested, "--density", "0.2").text
    kernel = "--kernel euclidean --bandwidth 5"
    assert f"count it with:\n  hushsum tally FILE --method race {kernel} --rows 5000 -o NAME.tally\n" in text
    assert f"  hushsum release FILE {kernel} --epsilon 1 --records 241000 -o NAME.hush\n" in text
    assert "With --bounds, grid can be used" in text
    assert "race ~" in text
    bounded = quick.ok(*requested, "--bounds", "0:255").text
    released, command = (line for line in bounded.splitlines() if line.startswith("  hushsum "))
    assert "--method grid --bandwidth 5 --bounds 0:255 --spacing " in command
    assert "With --bounds" not in bounded
    (quick.folder / "three.csv").write_text("r,g,b\n1,2,3\n4,5,6\n")
    for line in (command, released):
        words = line.removeprefix("  hushsum ").replace("FILE", "three.csv").split()
        assert quick.ok(*words).text
    public = ("--public", "ok.csv", "--columns", "a,b", "--json")
    hashed = ("--kernel", "euclidean", "--bandwidth", "1")
    made = quick.ok("plan", "--records", "9000", "--rho", "0.1", *hashed, *public).json
    assert made["basis"] == "public data"


def test_encrypted_tallies(quick: QuickShell) -> None:
    (quick.folder / "raw.key").write_bytes(secrets.token_bytes(32))
    (quick.folder / "hex.key").write_text((quick.folder / "raw.key").read_bytes().hex() + "\n")
    small = ("--columns", "a", "--bandwidth", "1", "--rows", "20")
    for name, key in (("e1", "raw.key"), ("e2", "hex.key")):
        quick.ok("tally", "ok.csv", *small, "--encryption-key-file", key, "-o", f"{name}.tally")
    assert quick.ok("show", "e1.tally", "--json").json["encrypted"] is True
    merged = quick.ok(
        "merge", "e1.tally", "e2.tally", "--encryption-key-file", "raw.key", "-o", "e.tally", "--json"
    ).json
    assert merged["encrypted"] is True
    quick.ok("release", "e.tally", "--epsilon", "1", "--encryption-key-file", "hex.key", "-o", "e.hush")
    assert "encrypted" in quick.refused(2, "release", "e.tally", "--epsilon", "1", "-o", "f.hush")
    unasked = ("release", "ok.tally", "--epsilon", "1", "--encryption-key-file", "raw.key", "-o", "f.hush")
    assert "is not encrypted, got a key" in quick.refused(2, *unasked)


def test_no_record_count_is_ever_reported(shell: Shell) -> None:
    reported = [
        shell.ok(
            "tally", "ok.csv", "--columns", "a", "--bandwidth", "1", "--rows", "20", "-o", "n.tally", *json
        )
        for json in ((), ("--json",))
    ]
    # A fresh noisy count is the true one now and then; this seed's is not.
    seeded = ("release", "n.tally", "--epsilon", "1", "--insecure-noise-seed", "1", "-o", "n.hush")
    reported += [shell.ok(*seeded, *json) for json in ((), ("--json",))]
    reported += [shell.ok("show", "n.tally", *json) for json in ((), ("--json",))]
    text = "".join(ended.text + ended.err for ended in reported).replace(",", "")
    assert str(RECORDS) not in text
    assert "CONFIDENTIAL" in reported[-2].text
    header = (shell.folder / "n.hush").read_bytes()[:2000]
    assert str(RECORDS).encode() not in header


def test_an_insecure_release_says_so(quick: QuickShell) -> None:
    seeded = ("release", "ok.tally", "--epsilon", "1", "--insecure-noise-seed", "5", "-o")
    first = quick.ok(*seeded, "a.hush")
    quick.ok(*seeded, "b.hush")
    assert (quick.folder / "a.hush").read_bytes() == (quick.folder / "b.hush").read_bytes()
    shown = quick.ok("show", "a.hush")
    assert "WARNING" in first.err
    assert "WARNING" in shown.err
    assert "No protection" in shown.text
    assert "insecure" not in quick.ok("release", "--help").text


def test_demo(shell: Shell) -> None:
    text = shell.ok("demo", "--records", "5000", "--epsilon", "2", "-o", "d").text
    assert "e^2 times" in text
    for name in ("payroll.parquet", "payroll.tally", "payroll.hush", "payroll.png"):
        assert f"d/{name}" in text
        assert (shell.folder / "d" / name).stat().st_size > 100
    command = text.strip().splitlines()[-1].removeprefix("Query it yourself: ")
    assert command.endswith("query d/payroll.hush --sum --at 60000")
    ended = subprocess.run(
        ["sh", "-c", command], cwd=shell.folder, env=environment(), check=False, capture_output=True
    )
    assert ended.returncode == 0, ended.stderr
    done = shell.ok("demo", "--records", "5000", "-o", "d", "--json").json
    assert len(done["answers"]) >= 5
    # Intervals that mostly miss would mean wrong error bars; each holds the truth with probability 0.95.
    inside = [each["lower"] <= each["truth"] <= each["upper"] for each in done["answers"]]
    assert sum(inside) >= 2


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plots(quick: QuickShell, suffix: str) -> None:
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    pictures = {
        "one": ("one.hush", "--labels", "height"),
        "two": ("ok.hush", "--range", "-3:5,-5:1", "--sum"),
        "cut": ("ok.hush", "--axes", "1", "--range", "-5:1", "--at", "1"),
    }
    for name, arguments in pictures.items():
        quick.ok("plot", *arguments, "-o", f"{name}.{suffix}")
        data = Path(quick.folder / f"{name}.{suffix}").read_bytes()
        assert data.startswith(magic)
        assert len(data) > 5000
    drawn = quick.ok("plot", "one.hush", "-o", f"one.{suffix}", "--json").json
    assert drawn["ranges"] == [[-5.0, 5.0]]
