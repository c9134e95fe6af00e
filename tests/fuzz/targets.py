"""Everything that reads bytes from outside, and what must hold for any bytes.

A target's ``check`` takes bytes of which only the checksum is right, and either sees them refused with the
error that the documentation names, or uses what was read in every way. Anything else raised is a finding.
``mutate`` changes an input by a seed; ``repair`` corrects the checksums of bytes that a fuzzer changed.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import hushsum as hs
from hushsum.errors import DataRefused, FileRefused, HushsumError, PeerRefused, PublicAssumption, UsageError
from hushsum.files import CHUNK, canonical_json, encrypt
from hushsum.parties import ReportTerms, collect_reports, make_report
from hushsum.parties.secure_aggregation import AggregationTerms, ServerState, SiteState
from hushsum.parties.summarization import (
    Answer,
    Broadcast,
    NoisyTarget,
    Opening,
    RunTerms,
    SummaryFeatures,
    release_target,
)
from hushsum.privacy import Relation
from hushsum.records import PLAIN, Bounds, CellFormat, as_dense, as_sets, open_batches, read_stream
from hushsum.releases import load_function
from hushsum.secret_functions import (
    SecretFunction,
    SqliteStore,
    StoredAnswer,
    load_secret_functions,
    save_secret_functions,
)
from hushsum.streams import Stream, StreamFile
from hushsum.tally import Checkpoint, load_tally
from tests.aggregation_runs import Run, small_terms, table_of
from tests.fuzz.mutate import joined, mutated_bytes, mutated_container, mutated_hush, mutated_json, split
from tests.fuzz.released import check_hush
from tests.memory_store import MemoryStore
from tests.released_cases import RELEASES

Mutate = Callable[[bytes, random.Random], bytes]
KEY = bytes(range(32))
SALT = bytes(16)
GOLDEN = Path(__file__).parents[1] / "golden"
CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Target:
    """One reader. ``check`` returns whether the bytes were read, and raises for what must not happen."""

    name: str
    seeds: Callable[[], list[bytes]]
    mutate: Mutate
    repair: Callable[[bytes], bytes]
    check: Callable[[bytes], bool]

    def kept(self) -> list[bytes]:
        """Inputs that were findings once, or reach code that the seeds do not; committed."""
        folder = CORPUS / self.name
        return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []

    def inputs(self) -> list[bytes]:
        """Seeds and corpus."""
        return [*self.seeds(), *self.kept()]


def run(target: Target, start: int, number: int) -> int:
    """Check so many changed inputs, from a first seed on; how many of them were read."""
    inputs = inputs_of(target.name)
    read = 0
    for seed in range(start, start + number):
        chance = random.Random(seed)
        data = target.mutate(chance.choice(inputs), chance)
        try:
            read += target.check(data)
        except Exception as error:
            raise AssertionError(
                f"{target.name} with seed {seed}: {type(error).__name__}: {error}"
            ) from error
    return read


@cache
def inputs_of(name: str) -> list[bytes]:
    """Seeds and corpus of a target, made once."""
    return TARGETS[name].inputs()


def same(data: bytes) -> bytes:
    """For formats without a checksum."""
    return data


# -- files of Hushsum -----------------------------------------------------------------------------------


def repair_container(data: bytes) -> bytes:
    """Lengths and checksum as they should be."""
    return joined(*split(data))


def _hush_seeds() -> list[bytes]:
    made = []
    for make in RELEASES.values():
        buffer = io.BytesIO()
        make().save(buffer)
        made.append(buffer.getvalue())
    return [*made, *(path.read_bytes() for path in sorted(GOLDEN.rglob("*.hush")))]


def _model_seeds() -> list[bytes]:
    from tests.contract.fitted_models import MODELS, fitted

    made = []
    for kind in MODELS:
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PublicAssumption)
            fitted(kind).release().save(buffer)
        if len(buffer.getvalue()) < 1 << 16:
            made.append(buffer.getvalue())
    return made


def _tally_seeds() -> list[bytes]:
    return [path.read_bytes() for path in sorted(GOLDEN.rglob("*.tally")) if path.stem != "encrypted"]


@contextlib.contextmanager
def _file(data: bytes, suffix: str) -> Any:
    """A file for readers that take a path; in memory where the system has a place for that."""
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        path = Path(folder) / f"x{suffix}"
        path.write_bytes(data)
        yield path


def check_tally(data: bytes, key: bytes | None = None) -> bool:
    """Refused, or a tally that can be shown, merged, released and saved."""
    with _file(data, ".tally") as path:
        try:
            tally = load_tally(path, encryption_key=key)
        except FileRefused:
            return False
        except UsageError:
            # Encrypted, says the header, and no key was given.
            return False
        repr(tally)
        # Counts at the end of their range may refuse to be added to or released; they are read all the same.
        with contextlib.suppress(HushsumError):
            tally.release(epsilon=1.0, insecure_noise_seed=1)
        tally.save(path)
    return True


def _checkpoint_seeds() -> list[bytes]:
    made = []
    with _file(b"", ".checkpoint") as path:
        for seed in _tally_seeds()[:3]:
            with _file(seed, ".tally") as tally:
                Checkpoint(path, {}).save(load_tally(tally), {"file": 1, "rows": 20})
            made.append(path.read_bytes())
    return made


def check_checkpoint(data: bytes) -> bool:
    """Refused, or a tally and a position that a count can continue from."""
    with _file(data, ".checkpoint") as path:
        try:
            found = Checkpoint(path, {}).load(file=int, rows=int)
        except (FileRefused, UsageError):
            return False
        assert found is not None
        Checkpoint(path, {}).save(*found)
    return True


def _stream_seeds() -> list[bytes]:
    made = []
    grid = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.3), bounds=(0, 1))
    sketch = hs.race(hs.EuclideanKernel(1, 1.0), rows=3, width=4, max_per_unit=2)
    several: list[tuple[hs.Tally, dict[str, Any]]] = [
        (grid, {"delta": 1e-6, "window": 2}),
        (grid, {}),
        (sketch, {"delta": 1e-6}),
        (grid, {"horizon": None, "delta": 1e-6}),
        (grid, {"horizon": None}),
    ]
    for tally, more in several:
        stream = hs.stream(tally, epsilon=1.0, insecure_noise_seed=1, **({"horizon": 5} | more))
        stream.add([[0.2], [0.4]], units=None if tally.max_per_unit is None else ["a", "b"]).step()
        with _file(b"", ".stream") as path:
            file = StreamFile(path, None)
            file.write(stream._terms, stream._state)
            file.close()
            made.append(path.read_bytes())
    return made


def check_stream(data: bytes, key: bytes | None = None) -> bool:
    """Refused, or a stream that goes on: a step, and a file of it."""
    with _file(data, ".stream") as path:
        file = StreamFile(path, key)
        try:
            stream = Stream(*file.read())
        except (FileRefused, UsageError):
            return False
        finally:
            file.close()
        repr(stream)
        with contextlib.suppress(HushsumError):
            stream.step()
        latest = stream.latest
        if latest is not None:
            buffer = io.BytesIO()
            latest.save(buffer)
            load_function(io.BytesIO(buffer.getvalue()))
    return True


def encrypted(data: bytes) -> bytes:
    """A plain tally or secret file with its payload encrypted, as its owner's key would."""
    prefix, header, payload = split(data)
    try:
        about = json.loads(header)
        about["encryption"] = {"cipher": "HKDF-SHA256, AES-256-GCM", "chunk": CHUNK, "salt": SALT.hex()}
        header = canonical_json(about)
        payload = b"".join(bytes(piece) for piece in encrypt([payload], KEY, SALT, prefix[:8] + header))
    except (ValueError, TypeError, RecursionError):
        pass
    return joined(prefix, header, payload)


def _secret_seeds() -> list[bytes]:
    bounds = Bounds((0.0, 0.0), (1.0, 1.0))
    function = SecretFunction(
        kernel=hs.GaussianKernel(dim=2, bandwidth=0.3),
        bounds=bounds,
        points=np.linspace(0.1, 0.9, 10, dtype=np.float32).reshape(5, 2),
        weights=np.ones(5),
        sensitivity=1.0,
        pointwise=1.0,
        relation=Relation.ADD_REMOVE,
        constant=0.0,
        scale=1.0,
        assumptions=(),
    )
    with _file(b"", ".secret") as path:
        save_secret_functions([function, function], path, about={"model": "x"})
        return [path.read_bytes()]


def check_secret(data: bytes, key: bytes | None = None) -> bool:
    """Refused, or functions that answer."""
    with _file(data, ".secret") as path:
        try:
            functions, _ = load_secret_functions(path, encryption_key=key)
        except (FileRefused, UsageError):
            return False
    for each in functions:
        rows = each.prepared(np.full((2, each.bounds.dim), 0.5))
        assert np.isfinite(each.at(rows)).all()
        assert each.covariance(rows, rows).shape == (2, 2)
        assert each.facts()
    return True


# -- stores of answers ----------------------------------------------------------------------------------

FACTS = {"function": "f", "claim": {"epsilon": "1"}}


def _answer_seeds() -> list[bytes]:
    with _file(b"", ".answers") as path:
        path.unlink()
        store = SqliteStore(path)
        store.salt("salt")
        store.open(FACTS)
        with store.session() as session:
            session.append([StoredAnswer(bytes([i]) * 16, 0.5 * i, 0.25 * i) for i in range(20)])
        store.close()
        return [path.read_bytes()]


def check_answers(data: bytes) -> bool:
    """Refused, or a store whose answers are numbers."""
    with _file(data, ".answers") as path:
        store = SqliteStore(path)
        try:
            store.salt("other")
            store.belongs_to(FACTS)
            found = store.answers([bytes([i]) * 16 for i in range(20)])
            assert store.count() >= 0
            with store.session() as session:
                kept = session.since(0)
        except (FileRefused, UsageError):
            return False
        finally:
            store.close()
    assert all(each is None or np.isfinite(each) for each in found)
    assert all(
        np.isfinite(each.answer) and np.isfinite(each.path) and type(each.point) is bytes for each in kept
    )
    return True


# -- messages of summarization --------------------------------------------------------------------------

_MESSAGES: dict[str, Callable[[bytes], Any]] = {
    "terms": RunTerms.from_bytes,
    "broadcast": Broadcast.from_bytes,
    "answer": Answer.from_bytes,
    "target": NoisyTarget.from_bytes,
    "opening": Opening.from_bytes,
}


def _features() -> SummaryFeatures:
    return SummaryFeatures(dim=2, bandwidth=0.5, features=8, seed=3)


def _message_seeds() -> list[bytes]:
    features = _features()
    terms = RunTerms(
        run="r",
        rule="threshold",
        features=features,
        owners=("a", "b"),
        size=10,
        rounds=3,
        batch=2,
        reach=5,
        cap=7,
        rho=Fraction(1, 10),
        rate=None,
        extra=0,
        hashed=False,
    )
    target = release_target(features, np.full((30, 2), 0.5), 0.1, insecure_noise_seed=1)
    direction = np.arange(features.width, dtype=np.int64)
    broadcast = Broadcast("r", 1, 1, "send", direction, threshold=4)
    return [terms.to_bytes(), Opening(terms, ("x", "y")).to_bytes(), target.to_bytes(), broadcast.to_bytes()]


def check_message(data: bytes) -> bool:
    """Refused by every reader, or read and written again as the same bytes."""
    read = False
    for reader in _MESSAGES.values():
        try:
            message = reader(data)
        except FileRefused:
            continue
        assert message.to_bytes() == data
        if isinstance(message, NoisyTarget):
            assert np.isfinite(message.mean()).all()
            assert np.isfinite(message.mean_variance)
        read = True
    return read


@cache
def _aggregation() -> tuple[Run, list[tuple[bytes, bytes, MemoryStore, MemoryStore]]]:
    """A run, and before each step the request to a site, its reply, and what site and server have stored."""
    run = Run(small_terms(3))
    site = run.terms.sites[0]
    steps = []
    while run.server.step != "done":
        before = run.stores[site].copy(), run.server_store.copy()
        request = run.server.request_for(site)
        assert request is not None
        steps.append((request, run.sites[site].answer(request), *before))
        run.step()
    return run, steps


def _aggregation_seeds() -> list[bytes]:
    # Without its signature a reply is a packed message, as a request is.
    return [each for request, reply, *_ in _aggregation()[1] for each in (request, reply[:-64])]


def check_aggregation(data: bytes) -> bool:
    """Refused by site and server at every step, or taken without another error; terms as the same bytes."""
    run, steps = _aggregation()
    site, read = run.terms.sites[0], False
    with contextlib.suppress(FileRefused):
        assert AggregationTerms.from_bytes(data).to_bytes() == data
        read = True
    for _, _, site_store, server_store in steps:
        with contextlib.suppress(FileRefused, PeerRefused):
            # Signed as a malicious site would sign it.
            signed = data + run.keys[site].sign(_signed(data))
            ServerState(run.terms, server_store.copy()).take(site, signed)
            read = True
        state = SiteState(run.keys[site], run.terms, lambda: table_of(site, run.terms), site_store.copy())
        with contextlib.suppress(FileRefused, PeerRefused):
            state.answer(data)
            read = True
    return read


def _signed(body: bytes) -> bytes:
    return b"hushsum aggregation message " + hashlib.sha256(body).digest()


# -- records --------------------------------------------------------------------------------------------


def check_records(data: bytes, suffix: str, cells: CellFormat = PLAIN) -> bool:
    """Refused, or batches of which every value is there."""
    with _file(data, suffix) as path:
        try:
            for batch, _ in open_batches(path, cells=cells):
                batch.validate(full=True)
                with contextlib.suppress(DataRefused):
                    as_dense(batch, dim=batch.num_columns)
        except (DataRefused, UsageError):
            return False
    return True


def check_edges(data: bytes, suffix: str) -> bool:
    """Refused, or sets of neighbours that fit together."""
    with _file(data, suffix) as path:
        try:
            for ids, sets in hs.records.read_edges(path).with_ids():
                assert len(ids) == len(sets)
        except (DataRefused, UsageError):
            return False
    return True


def _edge_seeds() -> list[bytes]:
    text = b"# from to\n1\t2\n2 3 \n\n%x\nann 7\n" + b"5 6\n" * 50
    return [text, b"1 2 0.5\n-3 9223372036854775807 1\n", b"a b\r\nb c\r\n"]


def _table() -> Any:
    import pyarrow as pa

    return pa.table({"a": np.arange(37.0), "b": np.arange(37), "s": [[1, 2], [], [3]] * 12 + [[4]]})


def _parquet_seeds() -> list[bytes]:
    import pyarrow.parquet as parquet

    made = []
    for options in (
        {},
        {"compression": "none"},
        {"compression": "none", "use_dictionary": False},
        {"compression": "none", "data_page_version": "2.0"},
    ):
        buffer = io.BytesIO()
        parquet.write_table(_table(), buffer, **options)
        made.append(buffer.getvalue())
    return made


def _workbook_seeds() -> list[bytes]:
    import zipfile

    made: Any = import_module("openpyxl").Workbook()
    for row in [["a", "b", "s"], [1, 2.5, "12"], [3, "4", "3"], [None, None, None], [5, 6, "7"]]:
        made.active.append(row)
    packed = io.BytesIO()
    made.save(packed)
    # Stored without compression, so that changed bytes reach the XML; with wrong checksums it is refused.
    plain = io.BytesIO()
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(plain, "w", zipfile.ZIP_STORED) as new:
        for part in old.namelist():
            new.writestr(part, old.read(part))
    return [packed.getvalue(), plain.getvalue()]


def _arrow_file_seeds() -> list[bytes]:
    import pyarrow as pa

    made = []
    for compression in (None, "lz4"):
        buffer = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(buffer, _table().schema, options=options) as out:
            out.write_table(_table())
        made.append(buffer.getvalue())
    return made


def stream_of(table: Any, compression: str | None = None) -> bytes:
    """A table as an Arrow stream."""
    import pyarrow as pa

    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as out:
        out.write_table(table)
    return sink.getvalue()


def _arrow_seeds() -> list[bytes]:
    import pyarrow as pa

    words = pa.table({"s": ["x", "é", None], "d": pa.array(["u", "v", "u"]).dictionary_encode()})
    vectors = pa.table({"f": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))})
    flags = pa.table({"c": [True, None, False], "n": pa.nulls(3)})
    return [stream_of(each) for each in (_table(), words, vectors, flags)]


def check_arrow(data: bytes) -> bool:
    """Refused, or a table every buffer of which lies within the bytes."""
    import pyarrow as pa

    try:
        table = read_stream(data, most_rows=100_000)
    except DataRefused:
        return False
    table.validate(full=True)
    low = pa.py_buffer(data).address
    high = low + len(data)
    for column in table.columns:
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                copied = buffer is None or not low <= buffer.address < high
                assert copied or buffer.address + buffer.size <= high
    table.to_pylist()
    with contextlib.suppress(DataRefused):
        as_dense(table, dim=max(1, table.num_columns))
    with contextlib.suppress(DataRefused):
        as_sets(table)
    return True


_TERMS = ReportTerms.of(hs.EuclideanKernel(dim=1, bandwidth=2.0), epsilon=1.0, rows=8, width=16)


def _report_seeds() -> list[bytes]:
    lines = [make_report(_TERMS, [[float(i)]], insecure_noise_seed=i) for i in range(4)]
    return [lines[0], b"\n".join(lines), b"\r\n".join(lines) + b"\n"]


def mutated_json_bytes(data: bytes, chance: random.Random) -> bytes:
    """A JSON document with changed values, or changed bytes."""
    if chance.random() < 0.5:
        return mutated_bytes(data, chance)
    return canonical_json(mutated_json(json.loads(data), chance))


def check_terms(data: bytes) -> bool:
    """Terms of reports are refused, or can be reported under."""
    try:
        terms = ReportTerms.from_bytes(data)
    except FileRefused:
        return False
    assert terms.to_bytes() == data
    if terms.basis.rows * terms.order < 1 << 20 and (terms.basis.kernel.dim or 99) < 99:
        record = [[0.0] * (terms.basis.kernel.dim or 0)]
        with contextlib.suppress(HushsumError):
            collect_reports(terms, make_report(terms, record))
    return True


def check_reports(data: bytes) -> bool:
    """Lines are refused, or are all reports."""
    try:
        f = collect_reports(_TERMS, data)
    except (FileRefused, UsageError):
        return False
    assert np.abs(f.table).sum(axis=1).max() <= 16 * f.reports
    return bool(np.isfinite(f.query([[0.0]]).stderr).all())


_CSV = [b"a,b\n1,2\n3,4.5\n", b'"a","b c"\r\n1e3,-2\r\n-.5,5\n', b"a\n" + b"1\n" * 300]


def _onnx_seeds() -> list[bytes]:
    """Models with a branch, constants, and a function."""
    from tests.attacks.test_hostile_onnx import TENSOR, message, model, node

    branch = node(b"If", [b"c"], b"y", message((6, message((1, node(b"Tanh", [b"x"], b"y"))))))
    constant = node(b"Constant", [], b"w", message((5, TENSOR)))
    function = message((25, message((7, node(b"Relu", [b"x"], b"y")))))
    return [model([constant, branch], (TENSOR,)), model([node(b"Tanh", [b"x"], b"y")]) + function]


def check_onnx(data: bytes) -> bool:
    """Refused, or a list of operations none of which draws; whether it was read."""
    from hushsum.records import RANDOM_OPERATIONS, operations_of

    try:
        found = operations_of(data)
    except UsageError:
        return False
    assert found
    assert not found & RANDOM_OPERATIONS
    return True


_ALL = [
    Target("hush", _hush_seeds, mutated_hush, repair_container, check_hush),
    Target("models", _model_seeds, mutated_hush, repair_container, check_hush),
    Target("tally", _tally_seeds, mutated_container, repair_container, check_tally),
    Target(
        "encrypted-tally",
        _tally_seeds,
        lambda data, chance: encrypted(mutated_container(data, chance)),
        lambda data: encrypted(repair_container(data)),
        lambda data: check_tally(data, KEY),
    ),
    Target("checkpoint", _checkpoint_seeds, mutated_container, repair_container, check_checkpoint),
    Target("stream", _stream_seeds, mutated_container, repair_container, check_stream),
    Target(
        "encrypted-stream",
        _stream_seeds,
        lambda data, chance: encrypted(mutated_container(data, chance)),
        lambda data: encrypted(repair_container(data)),
        lambda data: check_stream(data, KEY),
    ),
    Target("secret", _secret_seeds, mutated_container, repair_container, check_secret),
    Target(
        "encrypted-secret",
        _secret_seeds,
        lambda data, chance: encrypted(mutated_container(data, chance)),
        lambda data: encrypted(repair_container(data)),
        lambda data: check_secret(data, KEY),
    ),
    Target("answers", _answer_seeds, mutated_bytes, same, check_answers),
    Target("messages", _message_seeds, mutated_container, repair_container, check_message),
    Target("aggregation", _aggregation_seeds, mutated_container, repair_container, check_aggregation),
    Target("report-terms", lambda: [_TERMS.to_bytes()], mutated_json_bytes, same, check_terms),
    Target("reports", _report_seeds, mutated_bytes, same, check_reports),
    Target("csv", lambda: _CSV, mutated_bytes, same, lambda data: check_records(data, ".csv")),
    Target(
        "csv-utf-16",
        lambda: [each.decode().encode("utf-16") for each in _CSV],
        mutated_bytes,
        same,
        lambda data: check_records(data, ".csv", CellFormat(encoding="utf-16")),
    ),
    Target(
        "csv-shift-jis",
        lambda: [each.replace(b"a", "大".encode("shift_jis")) for each in _CSV],
        mutated_bytes,
        same,
        lambda data: check_records(data, ".csv", CellFormat(encoding="shift_jis")),
    ),
    Target("edges", _edge_seeds, mutated_bytes, same, lambda data: check_edges(data, ".txt")),
    Target(
        "edges-gzip",
        lambda: [gzip.compress(each, mtime=0) for each in _edge_seeds()],
        mutated_bytes,
        same,
        lambda data: check_edges(data, ".txt.gz"),
    ),
    Target("workbook", _workbook_seeds, mutated_bytes, same, lambda data: check_records(data, ".xlsx")),
    Target("parquet", _parquet_seeds, mutated_bytes, same, lambda data: check_records(data, ".parquet")),
    Target("arrow-file", _arrow_file_seeds, mutated_bytes, same, lambda data: check_records(data, ".arrow")),
    Target("arrow", _arrow_seeds, mutated_bytes, same, check_arrow),
    Target("onnx", _onnx_seeds, mutated_bytes, same, check_onnx),
]
TARGETS = {target.name: target for target in _ALL}
