"""What every released function does, whatever it is made of: one contract, and each kind runs all of it."""

from __future__ import annotations

import io
import json
import pickle
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.client import RemoteFunction, Service
from hushsum.errors import DataRefused, FileRefused, SecretRefused, UsageError
from hushsum.files import FileKind, write_container
from hushsum.releases import ReleasedFunction
from hushsum.releases._base import _CODECS
from tests.released_cases import ALL_RELEASES

REMOTE = "remote "
_PREFIX = struct.Struct("<8sIIQ")

_ERRORS = ("weight_variance", "cell_width", "feature_errors")
"""Of what is known of the errors of points, each may be null."""


@cache
def released(name: str) -> ReleasedFunction:
    return ALL_RELEASES[name]()


def dimension(f: ReleasedFunction) -> int:
    assert f.kernel.dim is not None
    return f.kernel.dim


def queries(f: ReleasedFunction, number: int = 7) -> Any:
    return np.random.default_rng(0).uniform(-0.2, 1.2, size=(number, dimension(f)))


def file_of(f: ReleasedFunction) -> bytes:
    stream = io.BytesIO()
    f.save(stream)
    return stream.getvalue()


def taken_apart(data: bytes) -> tuple[dict[str, Any], bytes]:
    _, _, header, payload = _PREFIX.unpack(data[: _PREFIX.size])
    start = _PREFIX.size + header
    parsed: dict[str, Any] = json.loads(data[_PREFIX.size : start])
    return parsed, data[start : start + payload]


def put_together(header: dict[str, Any], payload: bytes) -> io.BytesIO:
    stream = io.BytesIO()
    write_container(stream, FileKind.RELEASED, header, [payload])
    stream.seek(0)
    return stream


def test_every_kind_of_file_is_held_to_the_contract() -> None:
    kinds = {taken_apart(file_of(released(name)))[0]["type"] for name in ALL_RELEASES}
    # A bundle holds released functions and is none: it has tests of its own.
    assert kinds == set(_CODECS) - {"bundle"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that holds every kind of function, and a connection to it."""
    from tests.in_process_service import Town, listening

    folder = tmp_path_factory.mktemp("service")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        town = Town(folder)
        dataset = town.dataset()
        for name in ALL_RELEASES:
            town.publish(dataset, name, released(name))
    with listening(town.app) as url, hs.connect(url, town.tokens["olga"]) as connected:
        yield connected


@pytest.fixture
def f(name: str, request: pytest.FixtureRequest) -> ReleasedFunction:
    """The function of a name, which may be in a service."""
    if not name.startswith(REMOTE):
        return released(name)
    service: Service = request.getfixturevalue("service")
    return service.function(name.removeprefix(REMOTE))


@pytest.mark.parametrize("name", [*ALL_RELEASES, *(REMOTE + name for name in ALL_RELEASES)])
class TestReleasedFunction:
    """The contract of answers, also for functions in a service."""

    def test_fulfils_the_protocol(self, f: Any) -> None:
        assert isinstance(f, hs.ReleasedFunction)
        assert repr(f.claim) in repr(f)
        assert f.count >= 1.0

    def test_the_mean_is_the_sum_over_the_count(self, f: Any) -> None:
        np.testing.assert_allclose(f(queries(f)), f.sum(queries(f)) / f.count, rtol=1e-12)

    def test_query_has_the_same_values_and_an_interval_around_them(self, f: Any) -> None:
        for of, expected in (("mean", f(queries(f))), ("sum", f.sum(queries(f)))):
            answers = f.query(queries(f), of=of)
            np.testing.assert_allclose(answers.value, expected, rtol=1e-12, atol=1e-12)
            known = ~np.isnan(answers.stderr)
            assert (answers.stderr[known] >= 0.0).all()
            assert (answers.lower <= answers.value)[known].all()
            assert (answers.upper >= answers.value)[known].all()
            assert np.isnan(answers.upper[~known]).all()
            assert (answers.bound[known] >= answers.stderr[known]).all()
        wide, narrow = f.query(queries(f), level=0.99), f.query(queries(f), level=0.5)
        known = ~np.isnan(wide.stderr)
        assert (wide.upper - wide.lower >= narrow.upper - narrow.lower)[known].all()

    def test_a_batch_answers_as_single_queries_do(self, f: Any) -> None:
        single = np.concatenate([f([each]) for each in queries(f).tolist()])
        np.testing.assert_allclose(f(queries(f)), single, rtol=1e-12, atol=1e-14)

    def test_many_queries_in_little_memory(self, f: Any) -> None:
        many = np.tile(queries(f), (300, 1))
        np.testing.assert_allclose(f(many)[:7], f(queries(f)), rtol=1e-12, atol=1e-14)
        assert f(many).shape == (2100,)

    @pytest.mark.parametrize("wrong", [{"of": "median"}, {"level": 0.0}, {"level": 1.0}])
    def test_refuses_questions_it_does_not_know(self, f: Any, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match=r"of must be|level must be"):
            f.query(queries(f), **wrong)

    def test_refuses_queries_that_are_no_numbers_or_of_another_width(self, f: Any) -> None:
        for wrong in (np.full((2, dimension(f)), np.nan), np.zeros((2, dimension(f) + 1))):
            with pytest.raises(DataRefused):
                f(wrong)


@pytest.mark.parametrize("name", ALL_RELEASES)
def test_a_remote_function_answers_as_the_local_one_bit_for_bit(service: Service, name: str) -> None:
    local: Any = released(name)
    remote = service.function(name)
    assert isinstance(remote, RemoteFunction)
    assert (remote.claim, remote.kernel, remote.count) == (local.claim, local.kernel, local.count)
    Q = queries(local)
    np.testing.assert_array_equal(remote(Q), local(Q))
    np.testing.assert_array_equal(remote.sum(Q), local.sum(Q))
    for part in ("value", "stderr", "lower", "upper", "bound"):
        np.testing.assert_array_equal(getattr(remote.query(Q), part), getattr(local.query(Q), part))
    stream = io.BytesIO()
    remote.save(stream)
    assert stream.getvalue() == file_of(local)
    np.testing.assert_array_equal(remote.local()(Q), local(Q))
    with pytest.raises(SecretRefused, match="token"):
        pickle.dumps(remote)


@pytest.mark.parametrize("name", ALL_RELEASES)
class TestReleasedFile:
    """The contract of what is kept in a file."""

    def test_its_arrays_are_read_only(self, name: str) -> None:
        f = released(name)
        arrays = [each for each in vars(f).values() if isinstance(each, np.ndarray)]
        assert arrays
        assert not any(each.flags.writeable for each in arrays)

    def test_a_file_answers_the_same_and_is_written_again_byte_for_byte(self, name: str) -> None:
        f = released(name)
        back = hs.load(io.BytesIO(file_of(f)))
        assert type(back) is type(f)
        assert (back.claim, back.kernel, back.count) == (f.claim, f.kernel, f.count)
        np.testing.assert_array_equal(back(queries(f)), f(queries(f)))
        assert file_of(back) == file_of(f)
        again = pickle.loads(pickle.dumps(f))
        np.testing.assert_array_equal(again(queries(f)), f(queries(f)))

    def test_a_changed_byte_is_refused(self, name: str) -> None:
        data = file_of(released(name))
        places = np.random.default_rng(1).integers(0, len(data), 60).tolist()
        for place in [0, len(data) - 1, *places]:
            damaged = bytearray(data)
            damaged[place] ^= 0x40
            with pytest.raises(FileRefused):
                hs.load(io.BytesIO(bytes(damaged)))

    def test_a_shorter_or_longer_file_is_refused(self, name: str) -> None:
        data = file_of(released(name))
        for wrong in (data[:-1], data + b"\0", data[: len(data) // 2]):
            with pytest.raises(FileRefused):
                hs.load(io.BytesIO(wrong))

    def test_a_header_without_one_of_its_keys_is_refused(self, name: str) -> None:
        header, payload = taken_apart(file_of(released(name)))
        for key in header:
            with pytest.raises(FileRefused):
                hs.load(put_together({k: v for k, v in header.items() if k != key}, payload))

    @pytest.mark.parametrize("wrong", [None, -1, 1.5, "x", [], {}, True, 10**30, [-1, 2], [10**12, 10**12]])
    def test_a_key_of_another_type_is_refused(self, name: str, wrong: object) -> None:
        header, payload = taken_apart(file_of(released(name)))
        for key, value in header.items():
            # A method and a producer are any text; what is known of the noise is null or any number.
            text = isinstance(value, str) and isinstance(wrong, str) and key in ("producer", "method")
            number = wrong is None or isinstance(wrong, float)
            if value is wrong or text or (number and key in _ERRORS):
                continue
            with pytest.raises((FileRefused, UsageError)):
                hs.load(put_together({**header, key: wrong}, payload))
