from __future__ import annotations

import contextlib
import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushsum.errors import DataRefused, UsageError
from hushsum.records import as_dense, as_sets, open_batches

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

SECRET = "98765.4321"


def rows(count: int = 1000) -> Any:
    return np.random.default_rng(3).normal(size=(count, 3))


def write(path: Path, count: int = 1000) -> Any:
    """The same records in the format of the suffix: columns a, b, c and the person u."""
    data = rows(count)
    table = pa.table(
        {"a": data[:, 0], "b": data[:, 1], "u": [f"p{i % 7}" for i in range(count)], "c": data[:, 2]}
    )
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=300)
    elif path.suffix == ".feather":
        feather.write_feather(table, str(path), chunksize=300)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(str(path), table.schema) as out:
            out.write_table(table)
    else:
        lines = ["a,b,u,c", *(f"{x!r},{y!r},p{i % 7},{z!r}" for i, (x, y, z) in enumerate(data.tolist()))]
        text = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return data


SUFFIXES = [".csv", ".csv.gz", ".parquet", ".feather", ".arrow"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_reads_every_record_in_order(tmp_path: Path, suffix: str) -> None:
    data = write(tmp_path / f"x{suffix}")
    with open_batches(tmp_path / f"x{suffix}", unit_column="u", batch_bytes=4096) as stream:
        assert stream.column_names == ["a", "b", "c"]
        batches, units, progress = [], [], []
        for batch, ids in stream:
            batches.append(as_dense(batch, dim=3))
            units += ids.to_pylist()
            progress.append(-1.0 if stream.progress is None else stream.progress)
    np.testing.assert_array_equal(np.concatenate(batches), data.astype(np.float32))
    assert units == [f"p{i % 7}" for i in range(1000)]
    assert all(0 <= fraction <= 1 for fraction in progress)
    assert progress == sorted(progress)
    assert stream.progress == 1.0


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
def test_batches_are_about_as_large_as_asked(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"x{suffix}", 5000)
    sizes = [
        batch.num_rows for batch, _ in open_batches(tmp_path / f"x{suffix}", columns=["a"], batch_bytes=8000)
    ]
    assert sum(sizes) == 5000
    assert max(sizes) <= 1000


def test_csv_comes_in_several_batches(tmp_path: Path) -> None:
    write(tmp_path / "x.csv", 5000)
    sizes = [batch.num_rows for batch, _ in open_batches(tmp_path / "x.csv", columns=["a"], batch_bytes=1)]
    assert len(sizes) >= 3
    assert sum(sizes) == 5000


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_are_chosen_in_order(tmp_path: Path, suffix: str) -> None:
    data = write(tmp_path / f"x{suffix}")
    stream = open_batches(tmp_path / f"x{suffix}", columns=["c", "a"])
    parts = []
    for batch, ids in stream:
        assert ids is None
        assert batch.schema.names == ["c", "a"]
        parts.append(as_dense(batch, dim=2))
    np.testing.assert_array_equal(np.concatenate(parts), data[:, [2, 0]].astype(np.float32))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"x{suffix}")
    choices: list[dict[str, Any]] = [{"columns": ["x"]}, {"unit_column": "x"}, {"set_column": "x"}]
    for choice in choices:
        with pytest.raises(
            UsageError, match="columns of the data, got 'x'; the columns are 'a', 'b', 'u', 'c'"
        ):
            open_batches(tmp_path / f"x{suffix}", **choice)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_text_among_the_columns_is_named(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"x{suffix}")
    with pytest.raises(DataRefused, match=r"column 'u'.* must be of numbers"):
        list(open_batches(tmp_path / f"x{suffix}"))


def test_choices_that_exclude_each_other(tmp_path: Path) -> None:
    write(tmp_path / "x.csv")
    with pytest.raises(UsageError, match="exclude each other"):
        open_batches(tmp_path / "x.csv", columns=["a"], set_column="b")
    with pytest.raises(UsageError, match="must not be a column of records too"):
        open_batches(tmp_path / "x.csv", columns=["a", "u"], unit_column="u")
    with pytest.raises(UsageError, match="batch_bytes"):
        open_batches(tmp_path / "x.csv", batch_bytes=0)
    (tmp_path / "only.csv").write_text("u\n1\n")
    with pytest.raises(UsageError, match="besides the one of persons"):
        open_batches(tmp_path / "only.csv", unit_column="u")


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere.csv does not exist"):
        open_batches(tmp_path / "nowhere.csv")
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(UsageError, match="got a directory"):
        open_batches(tmp_path / "dir.csv")
    (tmp_path / "x.xls").write_text(SECRET)
    with pytest.raises(UsageError, match=r"x.xls must end in one of .csv"):
        open_batches(tmp_path / "x.xls")


CORRUPT: dict[str, bytes] = {"text": f"a\n{SECRET}\n".encode() * 50, "empty": b"", "short": b"PAR1"}


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv.gz"])
@pytest.mark.parametrize("content", CORRUPT)
def test_files_of_another_kind(tmp_path: Path, suffix: str, content: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(CORRUPT[content])
    with pytest.raises(DataRefused, match=r"cannot be read as|empty file") as caught:
        list(open_batches(path))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv.gz", ".csv"])
def test_damage_is_refused_or_reads_as_other_numbers(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    write(path)
    content = path.read_bytes()
    rng = np.random.default_rng(8)
    for start in rng.integers(0, len(content) - 64, size=25):
        path.write_bytes(content[:start] + rng.bytes(64) + content[start + 64 :])
        # No checksum guards the numbers of these formats; what must not come out is another exception.
        with contextlib.suppress(DataRefused, UsageError):
            for batch, _ in open_batches(path, unit_column="u"):
                as_dense(batch, dim=3)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-300])


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv.gz"])
def test_files_that_were_cut(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    write(path)
    cut(path)
    with pytest.raises(DataRefused, match="cannot be read as"):
        list(open_batches(path, unit_column="u"))


def test_parquet_sets_and_embeddings(tmp_path: Path) -> None:
    embeddings = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype=np.float32)), 3)
    pq.write_table(pa.table({"s": [[1, 2], []], "e": embeddings, "t": [["a"], []]}), tmp_path / "x.parquet")
    ((batch, _),) = open_batches(tmp_path / "x.parquet", set_column="s")
    assert as_sets(batch).values.tolist() == [1, 2]
    ((batch, _),) = open_batches(tmp_path / "x.parquet", columns=["e"])
    np.testing.assert_array_equal(as_dense(batch, dim=3), np.arange(6).reshape(2, 3))
    for column in ("e", "t"):
        with pytest.raises(DataRefused, match=f"column '{column}' of .* must be of lists of integers"):
            open_batches(tmp_path / "x.parquet", set_column=column)


def test_long_lists_make_short_batches_however_well_compressed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [[7] * 1000] * 100}), tmp_path / "x.parquet")
    sizes = [
        batch.num_rows
        for batch, _ in open_batches(tmp_path / "x.parquet", set_column="s", batch_bytes=80_000)
    ]
    assert sum(sizes) == 100
    assert max(sizes) <= 10


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_files_without_records(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"x{suffix}", 0)
    with pytest.raises(DataRefused, match="at least one record"):
        list(open_batches(tmp_path / f"x{suffix}", unit_column="u"))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"a,b\n1,2\n3,4\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    with open_batches("-") as stream:
        assert stream.progress is None
        ((batch, _),) = stream
    np.testing.assert_array_equal(as_dense(batch, dim=2), [[1, 2], [3, 4]])
    assert not Stdin.buffer.closed


def test_a_pipe() -> None:
    code = (
        "from hushsum.records import open_batches\n"
        "print(sum(batch.num_rows for batch, _ in open_batches('-', columns=['b'])))"
    )
    text = "a,b\n" + "x,2\n" * 300_000
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "300000"


def write_numbers(path: Path, count: int) -> None:
    block = rows(10_000)
    if path.suffix == ".csv":
        lines = "".join(f"{x:.6f},{y:.6f},{z:.6f}\n" for x, y, z in block).encode()
        with path.open("wb") as out:
            out.write(b"a,b,c\n")
            for _ in range(count // 10_000):
                out.write(lines)
    else:
        table = pa.table(dict(zip("abc", block.T, strict=True)))
        with pq.ParquetWriter(path, table.schema, use_dictionary=False) as writer:
            writer.write_table(pa.concat_tables([table] * (count // 10_000)), row_group_size=count // 4)


def peak_megabytes(path: Path) -> float:
    """The peak resident memory of a fresh process that reads the file."""
    code = (
        "import resource, sys\n"
        "from hushsum.records import as_dense, open_batches\n"
        "for batch, _ in open_batches(sys.argv[1]):\n"
        "    as_dense(batch, dim=3)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    scale = 2**20 if sys.platform == "darwin" else 2**10
    return int(done.stdout) / scale


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, suffix: str) -> None:
    small, large = tmp_path / f"small{suffix}", tmp_path / f"large{suffix}"
    write_numbers(small, 700_000)
    write_numbers(large, 7_000_000)
    assert large.stat().st_size > 150e6
    # The file grows by more than 150 MB; caches of the allocators take some time to fill.
    assert peak_megabytes(large) < peak_megabytes(small) + 50


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_stream_is_read_once(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"x{suffix}")
    stream = open_batches(tmp_path / f"x{suffix}", unit_column="u")
    assert sum(batch.num_rows for batch, _ in stream) == 1000
    with pytest.raises(UsageError, match="read already"):
        list(stream)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_stream_may_be_left_early(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"x{suffix}", 20_000)
    with open_batches(tmp_path / f"x{suffix}", unit_column="u", batch_bytes=1) as stream:
        batch, _ = next(iter(stream))
    assert batch.num_rows < 20_000
