"""Headers with a right checksum that nothing wrote: further names at any depth, numbers of another type."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused
from hushsum.releases import Released, load_released
from tests.fuzz.mutate import joined, split
from tests.golden import make
from tests.released_cases import RELEASES


def model() -> Released:
    return hs.PrivateKMeans(2, bounds=(0, 1), random_state=1).fit(np.linspace(0, 1, 500)[:, None]).released_


def golden(name: str) -> Callable[[], Released]:
    return lambda: load_released(make.FOLDER / f"{name}.hush")


KINDS: dict[str, Callable[[], Released]] = {
    **RELEASES,
    "model": model,
    "mapped": golden("euclidean-mapped"),
    "packed": golden("euclidean-packed"),
    "rounded": golden("euclidean-rounded"),
}


def changed(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every header that has one name more, or one real number in place of an integer."""
    # What a model says about itself belongs to the model, which reads it.
    if path == ("about",):
        return
    if isinstance(value, dict):
        yield f"{path} with a further name", {**value, "further": None}
    if type(value) is int:
        yield f"{path} as a real number", float(value)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        for what, new in changed(each, (*path, key)):
            if isinstance(value, dict):
                yield what, {**value, key: new}
            else:
                yield what, [*value[:key], new, *value[key + 1 :]]


def is_read(data: bytes) -> bool:
    try:
        load_released(io.BytesIO(data))
    except FileRefused:
        return False
    return True


@pytest.mark.parametrize("name", KINDS)
def test_a_header_has_one_spelling(name: str) -> None:
    stream = io.BytesIO()
    KINDS[name]().save(stream)
    prefix, header, payload = split(stream.getvalue())
    assert is_read(joined(prefix, header, payload))
    others = list(changed(json.loads(header)))
    assert len(others) >= 4
    assert [what for what, new in others if is_read(joined(prefix, json.dumps(new).encode(), payload))] == []
