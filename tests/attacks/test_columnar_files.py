"""Parquet and Arrow files that lie, abort the library that reads them, or unfold to gigabytes."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushsum.errors import DataRefused
from hushsum.records import _files as columnar_process
from hushsum.records import open_batches
from tests.fuzz.targets import CORPUS

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

ABORTS = ["aborts-the-reader.parquet", "aborts-the-reader-too.parquet"]
BOMB = CORPUS / "parquet" / "page-of-two-gigabytes.parquet"


def read(path: Path) -> int:
    return sum(batch.num_rows for batch, _ in open_batches(path))


def arrow_file(table: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue()


def test_seven_rows_that_say_three_hundred_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    whole = arrow_file(pa.table({"a": np.arange(7.0)}))
    path.write_bytes(whole)
    assert read(path) == 7
    path.write_bytes(whole.replace(struct.pack("<q", 7), struct.pack("<q", 300)))
    with pytest.raises(DataRefused, match="cannot be read as Arrow"):
        read(path)


@pytest.mark.parametrize("name", ABORTS)
def test_a_file_that_aborts_the_library_is_refused(name: str) -> None:
    with pytest.raises(DataRefused, match="cannot be read as Parquet"):
        read(CORPUS / "parquet" / name)


@pytest.mark.parametrize("name", ABORTS)
def test_those_files_do_abort_the_library(name: str) -> None:
    """The control: in a process of its own, the reader that Hushsum used before dies."""
    code = (
        "import sys, pyarrow.parquet as parquet\n"
        "m = parquet.ParquetFile(sys.argv[1]).metadata\n"
        "for i in range(m.num_row_groups):\n"
        "    [m.row_group(i).column(j).path_in_schema for j in range(m.row_group(i).num_columns)]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(CORPUS / "parquet" / name)], capture_output=True, check=False
    )
    if done.returncode >= 0:
        pytest.skip("this version of PyArrow survives the file")
    assert b"terminate called" in done.stderr


def test_a_small_file_of_gigabytes_is_refused() -> None:
    assert BOMB.stat().st_size < 2_000
    with pytest.raises(DataRefused, match="more memory"):
        read(BOMB)


def test_a_constant_column_that_unfolds_too_far_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushsum.records._files._ALWAYS_ALLOWED", 1 << 16)
    monkeypatch.setattr("hushsum.records._files._LARGEST_RATIO", 10)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.zeros(100_000)}), path)
    with pytest.raises(DataRefused, match="10 times its size"):
        read(path)


def test_the_next_file_is_read_after_one_that_killed_its_process(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.arange(100.0)}), path)
    for _ in range(3):
        with pytest.raises(DataRefused):
            read(CORPUS / "parquet" / ABORTS[0])
        assert read(path) == 100


def test_a_process_that_ended_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(arrow_file(pa.table({"a": np.arange(5.0)})))
    assert read(path) == 5
    running = columnar_process._running
    assert running is not None
    running[1].kill()
    assert read(path) == 5


def test_the_socket_of_a_process_that_ended_is_closed() -> None:
    """An unclosed one warns whenever it is collected, in whatever runs then."""
    columnar_process.Decoder().close()
    running = columnar_process._running
    assert running is not None
    running[1].kill()
    running[1].wait()
    columnar_process.Decoder().close()
    assert running[2].fileno() == -1


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_names_that_are_not_text_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    table = pa.table({"name": np.arange(5.0)})
    sink = io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(table, sink, store_schema=False)
    content = sink.getvalue() or arrow_file(table)
    assert b"name" in content
    path.write_bytes(content.replace(b"name", b"n\xff\xfee"))
    with pytest.raises(DataRefused, match="cannot be read as"):
        read(path)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
def test_the_process_that_decodes_has_no_secrets_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUSHSUM_ADMIN_TOKEN", "planted-secret")
    columnar_process._forget()
    path = tmp_path / "x.arrow"
    path.write_bytes(arrow_file(pa.table({"a": np.arange(5.0)})))
    with open_batches(path):
        running = columnar_process._running
        assert running is not None
        environment = Path(f"/proc/{running[1].pid}/environ").read_bytes()
    assert b"planted-secret" not in environment


def test_a_copy_by_fork_starts_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(arrow_file(pa.table({"a": np.arange(5.0)})))
    assert read(path) == 5
    code = (
        "import os, sys\n"
        "from hushsum.records import open_batches\n"
        "def rows(): return sum(batch.num_rows for batch, _ in open_batches(sys.argv[1]))\n"
        "assert rows() == 5\n"
        "child = os.fork()\n"
        "assert rows() == 5\n"
        "if child: assert os.waitpid(child, 0)[1] == 0\n"
        "else: os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=dict(os.environ))


@pytest.mark.parametrize("path", [CORPUS / "parquet" / ABORTS[0], BOMB], ids=["aborts", "bomb"])
def test_the_command_line_says_one_sentence(tmp_path: Path, path: Path) -> None:
    command = ["tally", str(path), "--kernel", "euclidean", "--bandwidth", "1", "--bounds", "0:100"]
    done = subprocess.run(
        [sys.executable, "-m", "hushsum", *command, "-o", str(tmp_path / "x.tally")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == DataRefused.exit_code, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x.tally").exists()
