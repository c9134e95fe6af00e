"""Short files that declare much: reading one, or refusing it, costs no more than its bytes account for."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused, HushsumError
from hushsum.files import pack_integers
from hushsum.models import load_model, model_of
from hushsum.parties import ReportTerms
from hushsum.releases import load_function, load_released
from hushsum.secret_functions import load_secret_functions
from hushsum.streams import Stream, StreamFile
from hushsum.tables import FourierSeries, basis_from_json
from hushsum.tables import _fourier_features as fourier_feature_diameter
from hushsum.tally import Checkpoint, load_tally
from tests.fuzz.mutate import joined, split
from tests.fuzz.targets import _MESSAGES, KEY, TARGETS, _file, encrypted, inputs_of

LARGEST = 10_000
MOST_BYTES = 20_000_000
MOST_LINES = 250_000
"""Executed lines of Python, 0.1 µs each. Native loops are bounded by the memory they fill."""

INTEGERS = [1000, 1 << 14, 1 << 20]
REALS = [1e-300, 1e-3, 1e6]
Path = tuple[Any, ...]
Read = Callable[[bytes], object]


def cost(read: Read, data: bytes) -> tuple[int, int]:
    """The lines that reading executes, and the bytes that it holds at once; refused or not."""
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += 1
        if lines > MOST_LINES:
            raise AssertionError(f"more than {MOST_LINES} lines")
        return count

    tracemalloc.start()
    before = sys.gettrace()
    sys.settrace(count)
    try:
        read(data)
    except HushsumError:
        pass
    finally:
        sys.settrace(before)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return lines, peak


def check(read: Read, data: bytes, what: object) -> None:
    try:
        _, peak = cost(read, data)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from None
    assert peak <= MOST_BYTES, what


def with_file(suffix: str, read: Callable[[Any], object]) -> Read:
    def through_a_file(data: bytes) -> None:
        with _file(data, suffix) as path:
            read(path)

    return through_a_file


def read_stream(path: Any, key: bytes | None = None) -> Stream:
    file = StreamFile(path, key)
    try:
        return Stream(*file.read())
    finally:
        file.close()


def read_message(data: bytes) -> None:
    for read in _MESSAGES.values():
        with contextlib.suppress(HushsumError):
            read(data)


READERS: dict[str, Read] = {
    "hush": lambda data: hs.load(io.BytesIO(data)),
    "models": lambda data: hs.load(io.BytesIO(data)),
    "tally": with_file(".tally", load_tally),
    "encrypted-tally": with_file(".tally", lambda path: load_tally(path, encryption_key=KEY)),
    "checkpoint": with_file(".checkpoint", lambda path: Checkpoint(path, {}).load(file=int, rows=int)),
    "stream": with_file(".stream", read_stream),
    "encrypted-stream": with_file(".stream", lambda path: read_stream(path, KEY)),
    "secret": with_file(".secret", load_secret_functions),
    "encrypted-secret": with_file(".secret", lambda path: load_secret_functions(path, encryption_key=KEY)),
    "messages": read_message,
    "report-terms": ReportTerms.from_bytes,
}


def numbers(value: Any, path: Path = ()) -> Iterator[tuple[Path, int | float]]:
    """Every number inside JSON, with the way to it; of lists the first two."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(min(len(value), 2)):
            yield from numbers(value[key], (*path, key))
    elif type(value) in (int, float):
        yield path, value


def with_number(value: Any, path: Path, number: int | float) -> Any:
    changed = copy.deepcopy(value)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = number
    return changed


def extremes(header: Any) -> Iterator[tuple[Path, Any]]:
    for path, old in numbers(header):
        for number in INTEGERS if isinstance(old, int) else REALS:
            yield (*path, number), with_number(header, path, number)


def kind_of(header: Any) -> object:
    """Files alike up to their numbers; one of each is enough."""
    basis = header.get("basis") or {}
    kernel = header.get("kernel") or basis.get("parameters", {}).get("kernel") or {}
    names = basis.get("name"), kernel.get("name"), header.get("about", {}).get("model"), "stream" in header
    return header.get("type"), header.get("kind"), *names, "cells" in header.get("table", {})


def fitted(prefix: bytes, header: Any) -> bytes | None:
    """A released table of this header with as many cells as it declares: zeros, packed to a bit each."""
    try:
        shape = basis_from_json(header["basis"]).shape
    except (HushsumError, ValueError):
        return None
    if math.prod(shape) > 8 * (LARGEST - 2000) or "terms" in header["noise"]:
        return None
    packed, centre = pack_integers(np.zeros(shape, np.int32), 1)
    header["table"] = {
        "type": "int32",
        "shape": list(shape),
        "packed": {"centre": centre, "size": len(packed), "unit": 1},
    }
    header.pop("paged", None)
    if "stream" not in header:
        short = header["noise"]["mechanism"] in ("discrete laplace", "gamma radius")
        header["noise"]["parameter"] = str(10**11 if short else 10**19)
        if "cells" in header["noise"]:
            header["noise"]["cells"] = math.prod(shape)
    return joined(prefix, json.dumps(header).encode(), packed)


def variants(name: str) -> Iterator[tuple[object, bytes]]:
    """Every kind of file of a target, with each of its numbers extreme."""
    seen = set()
    for seed in inputs_of(name):
        if len(seed) > LARGEST:
            continue
        if name == "report-terms":
            yield from ((what, json.dumps(each).encode()) for what, each in extremes(json.loads(seed)))
            continue
        if name == "messages":
            prefix, encoded, payload = split(seed)
            for what, each in extremes(json.loads(encoded)):
                yield what, joined(prefix, json.dumps(each).encode(), payload)
            continue
        prefix, encoded, payload = split(seed)
        try:
            header = json.loads(encoded)
        except ValueError:
            continue
        if kind_of(header) in seen:
            continue
        seen.add(kind_of(header))
        for what, each in extremes(header):
            plain = joined(prefix, json.dumps(each).encode(), payload)
            yield (kind_of(header), what), encrypted(plain) if name.startswith("encrypted") else plain
            if header.get("type") == "table" and what[0] in ("basis", "kernel", "stream"):
                valid = fitted(prefix, each)
                if valid is not None:
                    yield (kind_of(header), what, "valid"), valid


def test_every_kind_of_file_and_message_has_a_reader_here() -> None:
    """Records are read in blocks, and answers by SQLite; neither has a header that declares sizes."""
    others = {"answers", "reports", "aggregation", "onnx", "csv", "csv-utf-16", "csv-shift-jis", "edges"}
    others |= {"edges-gzip", "workbook", "parquet", "arrow-file", "arrow"}
    assert set(READERS) | others == set(TARGETS)


@pytest.mark.parametrize("name", READERS)
def test_a_short_file_with_extreme_numbers_is_cheap_to_read(name: str) -> None:
    read, checked = READERS[name], 0
    for what, data in variants(name):
        if len(data) <= LARGEST:
            check(read, data, what)
            checked += 1
    assert checked > 20


def saved(thing: Any) -> bytes:
    buffer = io.BytesIO()
    thing.save(buffer)
    return buffer.getvalue()


def tapered_series(frequencies: int = 1000, dim: int = 2) -> hs.Tally:
    basis = FourierSeries(
        bounds=hs.records.Bounds((0.0,) * dim, (1.0,) * dim),
        kernel=hs.GaussianKernel(dim=dim, bandwidth=0.3),
        frequencies=frequencies,
        taper=1.0,
    )
    return hs.Tally(basis)


def test_a_series_of_a_thousand_frequencies_in_each_column_is_cheap() -> None:
    """Few of four million are kept; their number is known without a list of all."""
    tally = tapered_series()
    assert cost(lambda _: tally.basis.shape, b"")[1] < MOST_BYTES / 10
    data = saved(tally.add([[0.5, 0.5]] * 50).release(epsilon=1.0, insecure_noise_seed=1))
    assert len(data) < 2000
    check(load_function_of, data, "valid")
    longer = json.loads(split(data)[1])
    longer["basis"]["parameters"]["taper"] = 0.0
    check(load_function_of, joined(split(data)[0], json.dumps(longer).encode(), split(data)[2]), "refused")
    assert np.isfinite(load_function(io.BytesIO(data))([[0.5, 0.5]])).all()


def load_function_of(data: bytes) -> hs.ReleasedFunction:
    return load_function(io.BytesIO(data))


@pytest.mark.parametrize(("dim", "frequencies"), [(1, 1024), (2, 1023), (3, 80), (5, 10), (9, 2), (13, 1)])
@pytest.mark.parametrize("bandwidth", [0.001, 0.3, 5.0])
@pytest.mark.parametrize("taper", [0.0, 1e-9, 0.01, 1.0])
def test_the_pairs_of_a_series_are_counted_without_listing_them(
    dim: int, frequencies: int, bandwidth: float, taper: float
) -> None:
    kernel = hs.GaussianKernel(dim=dim, bandwidth=bandwidth)
    bounds = hs.records.Bounds((0.0,) * dim, (1.0,) * dim)
    basis = FourierSeries(bounds=bounds, kernel=kernel, frequencies=frequencies, taper=taper)
    lines, peak = cost(lambda _: basis.shape, b"")
    assert lines < 5000
    assert peak < MOST_BYTES / 4
    if basis.shape[1] < 50_000:
        assert basis.shape[1] == 2 * len(basis.series[1]) - 1


def model_file(parts: int) -> bytes:
    """A model of one part, and more that it does not name."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 2))
    prefix, encoded, payload = split(saved(hs.PrivateModes(random_state=1).fit(X).release()))
    header = json.loads(encoded)
    size = header["parts"][0]["size"]
    series = saved(tapered_series().add([[0.5, 0.5]] * 50).release(epsilon=1.0))
    header["parts"] += [{"name": f"more {i}", "size": len(series)} for i in range(parts)]
    return joined(prefix, json.dumps(header).encode(), payload[:size] + series * parts + payload[size:])


def test_parts_that_a_model_does_not_name_are_refused_before_they_are_read() -> None:
    load_model(io.BytesIO(model_file(0)))
    lines = []
    for parts in (1, 4095):
        data = model_file(parts)
        with pytest.raises(FileRefused, match="makes no sense"):
            load_model(io.BytesIO(data))
        bundle: Any = load_released(io.BytesIO(data))
        lines.append(cost(partial(lambda bundle, _: model_of(bundle), bundle), b"")[0])
    assert lines[1] <= lines[0] + 4096


def test_models_are_opened_by_their_first_query() -> None:
    """A kernel machine of a million columns is a file of 2 kB; what they need is drawn for a query."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = hs.PrivateKernelSVC(features=4, delta=1e-6, classes=[0, 1], random_state=1).fit(X, y)
    prefix, encoded, payload = split(saved(model.release()))
    header = json.loads(encoded)
    check(lambda data: load_model(io.BytesIO(data)), saved(model), "as saved")
    wide = with_number(header, ("about", "features"), 1 << 20)
    check(
        lambda data: load_model(io.BytesIO(data)), joined(prefix, json.dumps(wide).encode(), payload), "wide"
    )


def features_file() -> bytes:
    kernel = hs.GaussianKernel(dim=3, bandwidth=0.2)
    tally = hs.fourier_features(kernel, features=64, bounds=[(0, 1)] * 3, seed=3)
    tally.add(np.random.default_rng(0).uniform(size=(100, 3)))
    return saved(tally.release(rho=0.5, relation="replace", insecure_noise_seed=1))


def test_the_diameter_of_features_is_not_computed_by_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    data = features_file()
    computed = []
    exact = fourier_feature_diameter.remembered_squared_diameter

    def noted(*given: Any) -> int:
        computed.append(given)
        return exact(*given)

    monkeypatch.setattr("hushsum.tables._fourier_features.remembered_squared_diameter", noted)
    function = load_function_of(data)
    assert not computed
    assert "not yet compared" in repr(function)
    function([[0.5, 0.5, 0.5]])
    assert len(computed) == 1
    assert "not yet compared" not in repr(function)
    function([[0.5, 0.5, 0.5]])
    assert len(computed) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda f: f([[0.5, 0.5, 0.5]]),
        lambda f: f.query([[0.5, 0.5, 0.5]]),
        lambda f: f.describe(),
        lambda f: f.save(io.BytesIO()),
        lambda f: f.table,
        lambda f: f.with_public_points([[0.5, 0.5, 0.5]] * 20)([[0.5, 0.5, 0.5]]),
    ],
)
def test_features_with_too_little_noise_are_refused_by_their_first_use(use: Callable[[Any], object]) -> None:
    prefix, encoded, payload = split(features_file())
    header = json.loads(encoded)
    use(load_function_of(joined(prefix, encoded, payload)))
    stated = Fraction(header["noise"]["parameter"])
    header["noise"]["parameter"] = str(stated * 9 // 10)
    function = load_function_of(joined(prefix, json.dumps(header).encode(), payload))
    with pytest.raises(FileRefused, match="does not keep its claim"):
        use(function)
    with pytest.raises(FileRefused, match="does not keep its claim"):
        use(function)
