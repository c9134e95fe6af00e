"""Files whose checksum holds and whose content does not: refused when they are read or first queried."""

from __future__ import annotations

import io
import json
import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused, PublicAssumption
from hushsum.models import PrivateClassifier, PrivateModes, load_model
from tests.fuzz.mutate import joined, split
from tests.fuzz.released import use_model
from tests.released_cases import RELEASES

Change = Callable[[dict[str, Any]], object]


def bytes_of(thing: Any) -> bytes:
    buffer = io.BytesIO()
    thing.save(buffer)
    return buffer.getvalue()


def changed(data: bytes, change: Change) -> bytes:
    prefix, header, payload = split(data)
    about = json.loads(header)
    change(about)
    return joined(prefix, json.dumps(about).encode(), payload)


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return {
        name: bytes_of(RELEASES[name]()) for name in ("race", "public points", "bins", "histogram", "pfda")
    }


@pytest.fixture(scope="module")
def models() -> dict[str, bytes]:
    X = np.random.default_rng(5).uniform(-1.0, 1.0, size=(300, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicAssumption)
        classifier = PrivateClassifier(random_state=1, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
        modes = PrivateModes(random_state=1).fit(X)
        return {"classifier": bytes_of(classifier.release()), "modes": bytes_of(modes.release())}


def kernel(about: dict[str, Any]) -> Any:
    return about["basis"]["parameters"]["kernel"]["parameters"]


FUNCTIONS: list[tuple[str, str, Change]] = [
    ("race", "a dim of the kernel beside other bounds", lambda h: kernel(h).update(dim=3)),
    ("race", "an absurd dim", lambda h: kernel(h).update(dim=2**40)),
    ("race", "a dim that is a truth value", lambda h: kernel(h).update(dim=True)),
    ("race", "a bandwidth in another spelling", lambda h: kernel(h).update(bandwidth=1)),
    ("race", "rows whose product overflows", lambda h: h["table"].update(shape=[2**32, 2**32])),
    ("race", "a parameter that nobody knows", lambda h: h["basis"]["parameters"].update(more=1)),
    ("race", "a value that nobody knows", lambda h: h.update(more=[[[]]])),
    ("race", "an even larger step", lambda h: h["table"].update(step=2**31)),
    ("race", "a long integer as the count", lambda h: h["count"].update(value=10**4000)),
    ("bins", "more bins than cells", lambda h: h["basis"]["parameters"].update(bins=[9, 9])),
    ("bins", "bins beyond every memory", lambda h: h["basis"]["parameters"].update(bins=[2**40, 2**40])),
    ("histogram", "points of another number", lambda h: h.update(points=[80, 2])),
    ("histogram", "points whose product overflows", lambda h: h.update(points=[2**32, 2**33])),
    ("histogram", "bounds for one column", lambda h: h.update(bounds=h["bounds"][:1])),
    ("histogram", "a variance beyond squares", lambda h: h.update(weight_variance=1e300)),
    ("histogram", "a count beyond squares", lambda h: h["count"].update(value=1e300)),
    ("pfda", "fewer values", lambda h: h.update(values=h["values"] - 1)),
    ("public points", "more points", lambda h: h.update(points=[h["points"][0] + 1, 1])),
]


@pytest.mark.parametrize(("name", "what", "change"), FUNCTIONS)
def test_a_function_that_could_not_be_used_is_refused(
    files: dict[str, bytes], name: str, what: str, change: Change
) -> None:
    assert hs.load(io.BytesIO(files[name]))
    with pytest.raises(FileRefused):
        hs.load(io.BytesIO(changed(files[name], change)))


MODELS: list[tuple[str, str, Change]] = [
    ("classifier", "absurd features", lambda h: h["about"].update(features=2**32)),
    ("classifier", "one feature more", lambda h: h["about"].update(features=3)),
    ("classifier", "bounds that are no range", lambda h: h["about"]["parameters"].update(bounds=[3, 1])),
    ("classifier", "bounds of three columns", lambda h: h["about"]["parameters"].update(bounds=[[0, 1]] * 3)),
    ("classifier", "one class more", lambda h: h["about"]["classes"]["values"].append(2)),
    ("classifier", "a rule that nobody knows", lambda h: h["about"]["parameters"].update(rule="best")),
    ("classifier", "a model that is a list", lambda h: h["about"].update(model=[])),
    ("classifier", "a parameter that nobody knows", lambda h: h["about"]["parameters"].update(more=1)),
    ("modes", "absurd features", lambda h: h["about"].update(features=10**4000)),
    ("modes", "one feature less", lambda h: h["about"].update(features=1)),
]


@pytest.mark.parametrize(("name", "what", "change"), MODELS)
def test_a_model_that_could_not_be_used_is_refused(
    models: dict[str, bytes], name: str, what: str, change: Change
) -> None:
    use_model(load_model(io.BytesIO(models[name])))
    with pytest.raises(FileRefused):
        use_model(load_model(io.BytesIO(changed(models[name], change))))


def test_files_inside_files_do_not_nest(files: dict[str, bytes]) -> None:
    """A sharpened function holds a released table; one that held another like itself could go on for ever."""
    prefix, header, payload = split(files["public points"])
    about = json.loads(header)
    points = payload[: len(payload) - about["release"]]
    inner = files["public points"]
    for _ in range(2000):
        about["release"] = len(inner)
        inner = joined(prefix, json.dumps(about).encode(), points[:8] + inner)
        about["points"] = [1, 1]
    with pytest.raises(FileRefused):
        hs.load(io.BytesIO(inner))


def test_a_public_number_of_records_is_not_negative(files: dict[str, bytes]) -> None:
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=5, width=5).add([[0.0]] * 10)
    data = bytes_of(tally.release(epsilon=1.0, relation="replace", insecure_noise_seed=1))
    with pytest.raises(FileRefused):
        hs.load(io.BytesIO(changed(data, lambda h: h["count"].update(value=-5))))


def test_numbers_beyond_what_answers_can_hold_are_refused(files: dict[str, bytes]) -> None:
    prefix, header, payload = split(files["histogram"])
    for number in (np.inf, np.nan, 1e300):
        hostile = payload[:-8] + struct.pack("<d", number)
        with pytest.raises(FileRefused):
            hs.load(io.BytesIO(joined(prefix, header, hostile)))
