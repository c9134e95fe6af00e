"""Files at addresses: an S3 server, globs, what is fetched of them, and what messages do not show."""

from __future__ import annotations

import io
import traceback
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.exact_tallies import exact_table
from tests.s3_server import BUCKET, SECRET, s3_server

import hushsum as hs
from hushsum.engines import processes
from hushsum.errors import DataRefused, HushsumError, UsageError
from hushsum.operations import RecordFiles, tally_records
from hushsum.planning import KernelSpec, TableSpec
from hushsum.records import LocalCopy, expanded, file_state, is_url, open_batches, row_group_sizes, shown_path

TABLE = pa.table({"a": np.arange(4000.0), "b": np.arange(4000.0) % 7, "who": np.arange(4000) % 100})


def parquet(rows: slice = slice(None), groups: int = 500) -> bytes:
    stream = io.BytesIO()
    table = TABLE.slice(rows.start or 0, (rows.stop or len(TABLE)) - (rows.start or 0))
    pyarrow.parquet.write_table(table, stream, row_group_size=groups)
    return stream.getvalue()


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as files:
        contents = {
            "day=1/x.parquet": parquet(slice(0, 2000)),
            "day=2/x.parquet": parquet(slice(2000, 4000)),
            "day=2/y.csv": b"a,b\n1,2\n3,4\n",
            "bad.parquet": b"PAR1 not a file PAR1",
            "huge.parquet": b"x" * 100 + (2**31).to_bytes(4, "little") + b"PAR1",
            "empty.parquet": b"",
            "edges/1.txt": b"0 1\n1 2\n",
            "edges/2.txt": b"2 3\n",
        }
        for name, content in contents.items():
            with files.open_output_stream(f"{BUCKET}/{name}") as stream:
                stream.write(content)
        yield files


def empty(**more: Any) -> hs.Tally:
    kernel = hs.EuclideanKernel(dim=2, bandwidth=5.0)
    return hs.race(kernel, rows=12, width=40, columns=["a", "b"], **more)


def table_of(tally: hs.Tally) -> Any:
    return exact_table(tally)


def expected() -> Any:
    return table_of(empty().add(TABLE.select(["a", "b"])))


def counted(path: str, **more: Any) -> Any:
    tally = empty()
    with open_batches(path, columns=["a", "b"], **more) as stream:
        for batch, _ in stream:
            tally.add(batch)
    return tally


class TestS3:
    def test_files_are_read_as_local_ones(self, s3: Any) -> None:
        total = counted(f"s3://{BUCKET}/day=1/x.parquet").merge(counted(f"s3://{BUCKET}/day=2/x.parquet"))
        assert np.array_equal(table_of(total), expected())
        assert counted(f"s3://{BUCKET}/day=2/y.csv")._count == 2

    def test_of_parquet_only_what_is_read_is_fetched(self, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        fetched: list[tuple[int, int]] = []
        real = LocalCopy.fetch

        def fetch(copy: LocalCopy, start: int, end: int) -> None:
            fetched.append((max(0, start), min(end, copy.size)))
            real(copy, start, end)

        monkeypatch.setattr(LocalCopy, "fetch", fetch)
        monkeypatch.setattr("hushsum.records._files._TAIL", 64)
        path = f"s3://{BUCKET}/day=1/x.parquet"
        size = file_state(path).size
        assert len(row_group_sizes(path)) == 4
        footer = sum(end - start for start, end in fetched)
        assert footer < size / 2
        fetched.clear()
        part = counted(path, row_groups=range(1, 2))
        assert part._count == 500
        assert np.array_equal(table_of(part), table_of(empty().add(TABLE.select(["a", "b"]).slice(500, 500))))
        assert sum(end - start for start, end in fetched) < footer + size / 3

    def test_copies_are_deleted(self, s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        counted(f"s3://{BUCKET}/day=1/x.parquet")
        with pytest.raises(DataRefused):
            counted(f"s3://{BUCKET}/bad.parquet")
        list(hs.records.read_edges(f"s3://{BUCKET}/edges/1.txt"))
        assert list(tmp_path.iterdir()) == []

    def test_globs(self, s3: Any, tmp_path: Path) -> None:
        local = tmp_path / "local-1.csv"
        local.write_text("a\n1\n")
        assert expanded([f"s3://{BUCKET}/day=*/x.parquet", str(tmp_path / "local-*.csv")]) == [
            f"s3://{BUCKET}/day=1/x.parquet",
            f"s3://{BUCKET}/day=2/x.parquet",
            str(local),
        ]
        assert expanded([f"s3://{BUCKET}/*.csv"][:0]) == []
        for wrong in (f"s3://{BUCKET}/*.csv", "s3://*/x.parquet"):
            with pytest.raises(UsageError):
                expanded([wrong])

    def test_engines_open_addresses_themselves(self, s3: Any) -> None:
        files = [f"s3://{BUCKET}/day=*/x.parquet"]
        assert np.array_equal(table_of(processes.tally(files, empty(), workers=2)), expected())
        capped = processes.tally(files, empty(max_per_unit=3), workers=2, unit_column="who")
        assert capped._count == 300

    def test_the_command_counts_them(self, s3: Any, tmp_path: Path) -> None:
        tally_records(
            RecordFiles((f"s3://{BUCKET}/day=*/x.parquet",), ("a", "b")),
            str(tmp_path / "x.tally"),
            kernel=KernelSpec(kernel="euclidean", bandwidth=5.0),
            size=TableSpec(rows=12, width=40),
        )
        assert np.array_equal(table_of(hs.load_tally(tmp_path / "x.tally")), expected())

    def test_edges(self, s3: Any) -> None:
        tally = hs.methods.count_graph(hs.records.read_edges(f"s3://{BUCKET}/edges/*.txt"), rows=5)
        assert tally._count == 4

    @pytest.mark.parametrize("name", ["bad.parquet", "huge.parquet", "empty.parquet"])
    def test_damaged_files_are_refused_by_name(self, s3: Any, name: str) -> None:
        with pytest.raises(DataRefused, match=f"s3://{BUCKET}/{name}"):
            counted(f"s3://{BUCKET}/{name}")

    @pytest.mark.parametrize("path", ["none.parquet", "day=1", "day=1/x.docx"])
    def test_what_is_not_there(self, s3: Any, path: str) -> None:
        with pytest.raises(UsageError, match=f"s3://{BUCKET}/{path}"):
            counted(f"s3://{BUCKET}/{path}")


def refusal(call: Any) -> str:
    with pytest.raises(HushsumError) as caught:
        call()
    return "".join(traceback.format_exception(caught.value)) + repr(caught.value)


class TestSecrets:
    def test_nothing_of_the_environment_or_the_address_is_shown(self, s3: Any) -> None:
        for url in (
            f"s3://{BUCKET}/none.parquet?secret={SECRET}",
            f"s3://ann:{SECRET}@{BUCKET}/none.parquet",
            f"https://ann:{SECRET}@127.0.0.1:9/none.parquet?token={SECRET}",
            f"nothing://{SECRET}@host/x.parquet",
        ):
            assert SECRET not in refusal(lambda: counted(url)), url  # noqa: B023
            assert SECRET not in refusal(lambda: processes.tally([url], empty(), workers=1)), url  # noqa: B023

    def test_shown_paths(self) -> None:
        assert shown_path("s3://a@b/c?d#e") == "s3://b/c"
        assert shown_path("dir/a?b.csv") == "dir/a?b.csv"
        assert is_url("abfs://x/y")


def test_http(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    (tmp_path / "x.csv").write_bytes(b"a,b\n1,2\n3,4\n")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/x.csv?token={SECRET}"
        assert counted(url)._count == 2
        server.shutdown()
