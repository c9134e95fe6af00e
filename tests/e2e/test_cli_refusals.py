from __future__ import annotations

import errno
import gzip
import os
import random
import signal
import subprocess
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.e2e.cli_process import COMMAND, Shell, environment
from tests.e2e.conftest import QuickShell

KERNEL = ("--kernel", "euclidean", "--bandwidth", "1")


@pytest.mark.parametrize(
    ("name", "content", "code", "says"),
    [
        ("nan.csv", b"a,b\n1,2\n3,nan\n", 6, "'b' must be finite, got NaN"),
        ("inf.csv", b"a,b\n1,2\n3,inf\n", 6, "'b' must be finite"),
        ("text.csv", b"a,b\n1,2\n3,secretword\n", 6, "'b'"),
        ("gap.csv", b"a,b\n1,2\n3,\n", 6, "got missing values (first in line 3)"),
        (
            "again.csv",
            b"a,b\n1,2\na,b\n3,4\n",
            6,
            "its own name (first in line 3) in 'b'; remove lines that repeat the header",
        ),
        ("title.csv", b"Pay,\nof 2025,\na,b\n1,2\n", 2, "must name columns of the data"),
        ("titles.csv", b"Pay,,\na,b,c\n1,2,3\n", 2, "if titles or notes stand above the header"),
        ("windows.csv", "a,b,Größe\n1,2,3\n".encode("cp1252"), 6, "such as --encoding windows-1252"),
        ("unicode.csv", "a,b\n1,2\n".encode("utf-16"), 6, "header in UTF-8; give its encoding"),
        ("ragged.csv", b"a,b\n1,2\n3,4,5\n", 6, "as many fields as the header"),
        ("header.csv", b"a,b\n", 6, "at least one record"),
        ("empty.csv", b"", 6, "empty file"),
        ("numbers.csv", b"1,2\n3,4\n", 6, "must name the columns"),
        ("NA.csv", b"a,b\n1,2\n3,NA\n", 6, "got missing values (first in line 3); correct those records"),
        ("commas.csv", b"a;b\n1;2,5\n", 6, "got decimal commas (first in line 2); give --decimal ,"),
        ("gzip.csv", b"\x1f\x8b\x08junk", 6, "got gzipped data; unpack it first"),
        ("parquet.csv", b"PAR1junk", 6, "got Parquet; give the path"),
        ("junk.parquet", random.Random(1).randbytes(3000), 6, "cannot be read as Parquet"),
        ("junk.csv.gz", random.Random(2).randbytes(3000), 6, "gzipped CSV"),
        ("other.csv", b"a,c\n1,2\n", 2, "must name columns of the data, got 'b'"),
        ("data.xls", b"PK", 2, "must end in one of"),
    ],
)
def test_records_that_are_refused(quick: QuickShell, name: str, content: bytes, code: int, says: str) -> None:
    (quick.folder / name).write_bytes(content)
    sentence = quick.refused(code, "tally", name, "--columns", "a,b", *KERNEL, "-o", "x.tally")
    assert says in sentence
    assert "secretword" not in sentence


def test_a_declared_encoding_is_read_by_every_command(quick: QuickShell) -> None:
    (quick.folder / "windows.csv").write_bytes("größe;b\n1,5;2\n3;4\n5;6\n7;8\n".encode("cp1252"))
    written = ("--decimal", ",", "--encoding", "cp1252")
    box = ("--columns", "größe,b", "--bounds", "0:9", "--bandwidth", "1")
    quick.ok("tally", "windows.csv", *box, *written, "-o", "x.tally")
    quick.ok("release", "windows.csv", *box, *written, "--epsilon", "1", "-o", "x.hush")
    points = quick.ok("query", "x.hush", "--points", "windows.csv", *written).text
    assert points.splitlines()[1].startswith("1.5,2")
    quick.ok("plan", "--records", "100", "--public", "windows.csv", *box[2:], "--epsilon", "1", *written)
    made = (
        "heatmap",
        "windows.csv",
        *box[:2],
        "--bounds",
        "0:9,0:9",
        "--plane",
        "--bandwidth",
        "1",
        *written,
    )
    quick.ok(*made, "--epsilon", "1", "-o", "x.png", "--size", "16")
    sentence = quick.refused(2, "tally", "windows.csv", *box, "--encoding", "klingon", "-o", "y.tally")
    assert "--encoding must be one of utf-8, utf-16, " in sentence


def test_an_old_tally_survives_a_refused_run(quick: QuickShell) -> None:
    before = (quick.folder / "ok.tally").read_bytes()
    (quick.folder / "nan.csv").write_text("a,b\n1,2\n3,nan\n")
    quick.refused(6, "tally", "ok.csv", "nan.csv", *KERNEL, "-o", "ok.tally")
    assert (quick.folder / "ok.tally").read_bytes() == before


def test_a_wrong_column_of_several_files_names_the_file(quick: QuickShell) -> None:
    (quick.folder / "other.csv").write_text("a,c\n1,2\n")
    sentence = quick.refused(2, "tally", "ok.csv", "other.csv", "--columns", "a,b", *KERNEL, "-o", "x.tally")
    assert "other.csv: --columns must name columns of the data, got 'b'" in sentence


def test_categories_are_refused_in_plain_words(quick: QuickShell) -> None:
    table = pa.table({"a": pa.array(["x", "y"]).dictionary_encode()})
    pa.parquet.write_table(table, quick.folder / "c.parquet")
    assert "got categories; " in quick.refused(6, "tally", "c.parquet", *KERNEL, "-o", "x.tally")


def test_compressed_bytes_on_standard_input(shell: Shell) -> None:
    packed = gzip.compress(b"a,b\n1,2\n")
    assert "zcat" in shell.refused(6, "tally", "-", *KERNEL, "-o", "x.tally", stdin=packed)


def test_methods_that_do_not_fit(quick: QuickShell) -> None:
    tally = ("tally", "ok.csv", "--bandwidth", "1", "-o", "x.tally")
    assert "or another method" in quick.refused(2, *tally, "--kernel", "gaussian", "--method", "race")
    assert "--bounds must be declared" in quick.refused(2, *tally, "--kernel", "gaussian", "--method", "grid")
    assert "spacing is for the method grid" in quick.refused(2, *tally, "--spacing", "1")
    assert "method must be one of" in quick.refused(2, *tally, "--method", "guess")


def test_names_and_files_that_are_not_replaced(quick: QuickShell) -> None:
    before = {name: (quick.folder / name).read_bytes() for name in ("ok.csv", "ok.tally", "one.tally")}
    (quick.folder / "mislabelled.hush").write_bytes(before["ok.tally"])
    release = ("release", "one.tally", "--epsilon", "1", "--yes", "-o")
    assert "let its name end in .tally" in quick.refused(2, "tally", "ok.csv", *KERNEL, "-o", "x.hush")
    assert "let its name end in .tally" in quick.refused(2, "merge", "ok.tally", "one.tally", "-o", "x.hush")
    assert "let its name end in .hush" in quick.refused(2, *release, "x.tally")
    assert "is confidential" in quick.refused(2, *release, "mislabelled.hush")
    for name in ("notes.txt", "notes.hush"):
        (quick.folder / name).write_text("not to be lost")
    assert "is not a released function" in quick.refused(2, *release, "notes.hush")
    assert "is not a tally" in quick.refused(2, "tally", "ok.csv", *KERNEL, "-o", "notes.txt")
    assert {name: (quick.folder / name).read_bytes() for name in before} == before
    first = (quick.folder / "one.hush").read_bytes()
    quick.ok(*release, "one.hush")
    assert (quick.folder / "one.hush").read_bytes() != first


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
        ("tally", "ok.csv", "--method", "race", "--kernel", "gaussian", "--bandwidth", "1", "-o", "x.tally"),
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
        ("tally", "ok.csv", *KERNEL, "--encryption-key-file", "ok.csv", "-o", "x.tally"),
        ("tally", "ok.csv", *KERNEL, "--encryption-key-file", "no.key", "-o", "x.tally"),
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
    sentence = quick.refused(2, *arguments)
    assert sentence.endswith(" --help")
    assert not set(sentence) & set("╭│╰")


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
    quick.ok("tally", "ok.csv", *small, "--encryption-key-file", "right.key", "-o", "e.tally")
    sentence = quick.refused(
        5, "release", "e.tally", "--epsilon", "1", "--encryption-key-file", "wrong.key", "-o", "x.hush"
    )
    assert "key does not open" in sentence


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_full_disk_is_told_in_one_sentence(
    quick: QuickShell, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    said = quick.refused(1, "plot", "one.hush", "-o", f"x.{suffix}")
    assert f"refused the file 'x.{suffix}': no space left on device; free some space" in said
    assert "'x.tally'" in quick.refused(1, "tally", "ok.csv", *KERNEL, "-o", "x.tally")


def interrupt(*arguments: object, **options: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def fill_disk(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("fail", "code"), [(fill_disk, 1), (interrupt, 130)])
def test_a_release_that_fails_after_its_debit_says_so_and_is_repeated_for_nothing(
    quick: QuickShell, monkeypatch: pytest.MonkeyPatch, fail: Callable[[], None], code: int
) -> None:
    def synchronise(descriptor: int) -> None:
        if ".hush" in os.readlink(f"/proc/self/fd/{descriptor}"):
            fail()

    quick.ok("ledger", "init", "--ledger", "l.db", "--dataset", "town", "--epsilon", "2")
    booked = (
        "release",
        "ok.tally",
        "--epsilon",
        "1",
        "--ledger",
        "l.db",
        "--dataset",
        "town",
        "-o",
        "x.hush",
    )
    with monkeypatch.context() as patch:
        patch.setattr("hushsum.cli.interrupts._received", [])
        patch.setattr("os.fsync", synchronise)
        ended = quick.run(*booked)
    assert ended.code == code
    assert "the budget is debited; repeat the same command for the release, which costs nothing" in ended.err
    assert "another folder" not in ended.err, "there it would be another release, and spend again"
    assert not (quick.folder / "x.hush").exists()
    quick.ok(*booked)
    status = quick.ok("ledger", "status", "--ledger", "l.db", "--dataset", "town", "--json").json
    assert float(status["spent"]["epsilon"]) == 1.0


def test_an_interruption_before_the_debit_says_that_nothing_was_spent(shell: Shell) -> None:
    """In a process of its own: what it has spent is a fact of the process."""
    records = ("--columns", "a,b", "--bounds", "-9:9", "--bandwidth", "1")
    for command, said in (("release", "interrupted; nothing was spent\n"), ("tally", "interrupted\n")):
        more = ("--epsilon", "1", "-o", "x.hush") if command == "release" else ("-o", "x.tally")
        process = subprocess.Popen(
            [*COMMAND, command, "-", *records, *more],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=shell.folder,
            env=environment(),
        )
        assert process.stdin is not None
        # Far more than the pipe holds: when the last byte is taken, reading has begun.
        process.stdin.write(b"a,b\n" + b"0.5,0.5\n" * 400_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        assert (process.returncode, err.decode()) == (130, said)


@pytest.mark.parametrize("name", ["x.csv", "x.png", "x", "x.parquet"])
def test_a_release_is_not_written_under_the_name_of_something_else(quick: QuickShell, name: str) -> None:
    said = quick.refused(2, "release", "ok.tally", "--epsilon", "1", "-o", name)
    assert f"--output must end in .hush, got {name!r}" in said
    box = ("--columns", "a,b", "--bounds", "-9:9", "--epsilon", "1")
    assert "must end in .hush" in quick.refused(2, "fit", "density", "ok.csv", *box, "-o", name)


def test_unexpected_failures_say_how_to_see_more(quick: QuickShell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: str) -> None:
        raise RuntimeError(f"a data value of {source}")

    monkeypatch.setattr("hushsum.cli.public_files.describe_file", broken)
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
