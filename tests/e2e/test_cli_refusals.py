from __future__ import annotations

import random

import pytest
from tests.e2e.cli_process import Shell
from tests.e2e.conftest import QuickShell

KERNEL = ("--kernel", "euclidean", "--bandwidth", "1")


@pytest.mark.parametrize(
    ("name", "content", "code", "says"),
    [
        ("nan.csv", b"a,b\n1,2\n3,nan\n", 6, "'b' must be finite, got NaN"),
        ("inf.csv", b"a,b\n1,2\n3,inf\n", 6, "'b' must be finite"),
        ("text.csv", b"a,b\n1,2\n3,secretword\n", 6, "'b'"),
        ("gap.csv", b"a,b\n1,2\n3,\n", 6, "'b' must not have missing values"),
        ("ragged.csv", b"a,b\n1,2\n3,4,5\n", 6, "as many fields as the header"),
        ("header.csv", b"a,b\n", 6, "at least one record"),
        ("empty.csv", b"", 6, "empty file"),
        ("numbers.csv", b"1,2\n3,4\n", 6, "must name the columns"),
        ("junk.parquet", random.Random(1).randbytes(3000), 6, "cannot be read as Parquet"),
        ("junk.csv.gz", random.Random(2).randbytes(3000), 6, "gzipped CSV"),
        ("other.csv", b"a,c\n1,2\n", 2, "column 'b' is not in the data"),
        ("data.xlsx", b"PK", 2, "must end in one of"),
    ],
)
def test_records_that_are_refused(quick: QuickShell, name: str, content: bytes, code: int, says: str) -> None:
    (quick.folder / name).write_bytes(content)
    sentence = quick.refused(code, "tally", name, "--columns", "a,b", *KERNEL, "-o", "x.tally")
    assert says in sentence
    assert "secretword" not in sentence


def test_an_old_tally_survives_a_refused_run(quick: QuickShell) -> None:
    before = (quick.folder / "ok.tally").read_bytes()
    (quick.folder / "nan.csv").write_text("a,b\n1,2\n3,nan\n")
    quick.refused(6, "tally", "ok.csv", "nan.csv", *KERNEL, "-o", "ok.tally")
    assert (quick.folder / "ok.tally").read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("tally", "missing.csv", *KERNEL, "-o", "x.tally"),
        ("tally", "ok.csv", "missing.csv", *KERNEL, "-o", "x.tally"),
        ("tally", "ok.csv", "./ok.csv", *KERNEL, "-o", "x.tally"),
        ("tally", "ok.csv", "--kernel", "euclid", "-o", "x.tally"),
        ("tally", "ok.csv", "--kernel", "euclidean", "-o", "x.tally"),
        ("tally", "ok.csv", "--bandwidth", "-1", "-o", "x.tally"),
        ("tally", "ok.csv", "--bandwidth", "nan", "-o", "x.tally"),
        ("tally", "ok.csv", "--kernel", "gaussian", "--bandwidth", "1", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--bits", "3", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--rows", "0", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--bounds", "0-255", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--bounds", "1:0", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--bounds", "0:1,0:1,0:1", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--unit-column", "a", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--max-per-unit", "2", "-o", "x.tally"),
        ("tally", "ok.csv", "--kernel", "jaccard", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--set-column", "a", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "-o", "nowhere/x.tally"),
        ("tally", "ok.csv", *KERNEL, "-o", "ok.csv"),
        ("tally", "ok.csv", *KERNEL, "-o", "."),
        ("tally", "ok.csv", *KERNEL, "-o", "-"),
        ("tally", "ok.csv", *KERNEL, "--key-file", "ok.csv", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--key-file", "no.key", "-o", "x.tally"),
        ("merge", "ok.tally", "-o", "x.tally"),
        ("merge", "ok.tally", "ok.tally", "-o", "x.tally"),
        ("merge", "ok.tally", "missing.tally", "-o", "x.tally"),
        ("release", "ok.tally", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "-1", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "0", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "nan", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "inf", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "1", "--delta", "1", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "1", "--rho", "1", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "1", "--relation", "swap", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "1", "--rows", "many", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "1", "--count-share", "2", "-o", "x.hush"),
        ("release", "ok.tally", "--epsilon", "1", "-o", "-", "--json"),
        ("release", "ok.tally", "--epsilon", "1", "-o", "ok.tally"),
        ("query", "ok.hush"),
        ("query", "ok.hush", "--at", "0,0,0"),
        ("query", "ok.hush", "--at", "0"),
        ("query", "ok.hush", "--at", "0,x"),
        ("query", "ok.hush", "--at", "0,nan"),
        ("query", "ok.hush", "--at", "0,0", "--level", "1.5"),
        ("query", "ok.hush", "--at", "0,0", "--estimator", "mode"),
        ("query", "ok.hush", "--at", "0,0", "--points", "ok.csv"),
        ("query", "one.hush", "--points", "ok.csv", "--columns", "a,b"),
        ("query", "missing.hush", "--at", "0,0"),
        ("show", "missing.hush"),
        ("plan", "--records", "0", "--dim", "3", "--epsilon", "1", "--bandwidth", "5"),
        ("plan", "--records", "10", "--epsilon", "1", "--bandwidth", "5"),
        ("plan", "--records", "10", "--dim", "3", "--bandwidth", "5"),
        ("plot", "ok.hush", "-o", "x.png"),
        ("plot", "ok.hush", "--range", "0:1", "-o", "x.jpg"),
        ("plot", "ok.hush", "--range", "1:0", "-o", "x.png"),
        ("plot", "ok.hush", "--range", "0:1", "--axes", "0,5", "-o", "x.png"),
        ("plot", "ok.hush", "--range", "0:1", "--axes", "0", "-o", "x.png"),
        ("demo", "--records", "0", "-o", "d"),
        ("demo", "-o", "ok.csv"),
    ],
)
def test_usage_that_is_refused(quick: QuickShell, arguments: tuple[str, ...]) -> None:
    quick.refused(2, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [("tally", "ok.csv"), ("release", "ok.tally", "--epsilon", "one"), ("nothing",), ("show", "-x")],
)
def test_mistyped_commands(quick: QuickShell, arguments: tuple[str, ...]) -> None:
    ended = quick.run(*arguments)
    assert ended.code == 2
    assert "Usage:" in ended.err
    assert ended.out == b""


def test_tallies_that_do_not_fit(quick: QuickShell) -> None:
    quick.ok("tally", "ok.csv", "--bandwidth", "2", "--rows", "120", "--width", "200", "-o", "wide.tally")
    assert "fingerprint" in quick.refused(4, "merge", "ok.tally", "wide.tally", "-o", "x.tally")


def test_damaged_functions(quick: QuickShell) -> None:
    whole = (quick.folder / "ok.hush").read_bytes()
    random_byte = random.Random(1)
    damaged = {"short": whole[: len(whole) // 2], "long": whole + b"x", "nothing": b""}
    for i in range(6):
        changed = bytearray(whole)
        changed[random_byte.randrange(len(whole))] ^= 1 << random_byte.randrange(8)
        damaged[f"flip{i}"] = bytes(changed)
    for name, data in damaged.items():
        (quick.folder / f"{name}.hush").write_bytes(data)
        quick.refused(5, "query", f"{name}.hush", "--at", "0,0")
    quick.refused(5, "show", "short.hush")
    quick.refused(5, "plot", "short.hush", "--range", "0:1", "-o", "x.png")


def test_files_of_the_wrong_kind(quick: QuickShell) -> None:
    assert "confidential tally" in quick.refused(5, "query", "ok.tally", "--at", "0,0")
    assert "released function" in quick.refused(5, "release", "ok.hush", "--epsilon", "1", "-o", "x.hush")
    quick.refused(5, "show", "ok.csv")
    changed = bytearray((quick.folder / "ok.tally").read_bytes())
    changed[-40] ^= 1
    (quick.folder / "bad.tally").write_bytes(changed)
    quick.refused(5, "release", "bad.tally", "--epsilon", "1", "-o", "x.hush")
    quick.refused(5, "show", "bad.tally")


def test_a_wrong_key(quick: QuickShell) -> None:
    for name in ("right", "wrong"):
        (quick.folder / f"{name}.key").write_text((name[0].encode().hex() * 32) + "\n")
    small = ("--columns", "a", *KERNEL, "--rows", "20")
    quick.ok("tally", "ok.csv", *small, "--key-file", "right.key", "-o", "e.tally")
    sentence = quick.refused(
        5, "release", "e.tally", "--epsilon", "1", "--key-file", "wrong.key", "-o", "x.hush"
    )
    assert "key does not open" in sentence


def test_unexpected_failures_say_how_to_see_more(quick: QuickShell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: str) -> None:
        raise RuntimeError(f"a data value of {source}")

    monkeypatch.setattr("hushsum.jobs.describe_function.describe_file", broken)
    sentence = quick.refused(1, "show", "ok.hush")
    assert "HUSHSUM_DEBUG=1" in sentence
    assert "data value" not in sentence


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (6, ("tally", "nan.csv", "--columns", "a,b", *KERNEL, "-o", "x.tally")),
        (2, ("release", "ok.tally", "--epsilon", "nan", "-o", "x.hush")),
        (2, ("query", "ok.hush", "--at", "0,0,0")),
        (5, ("show", "ok.csv")),
    ],
)
def test_refusals_of_the_real_process(shell: Shell, code: int, arguments: tuple[str, ...]) -> None:
    (shell.folder / "nan.csv").write_text("a,b\n1,2\n3,nan\n")
    shell.refused(code, *arguments)
