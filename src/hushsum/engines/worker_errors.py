"""Errors of workers as data, so that the driver raises the same error and no engine logs it."""

from __future__ import annotations

import os
from typing import Any

from hushsum.error_text import FilePath, Part, Words, parts_of, words_as_json, words_from_json
from hushsum.errors import KINDS, HushsumError


def naming(error: HushsumError, name: str) -> HushsumError:
    """The error, with the file or partition in its sentence."""
    if error.names_file(name):
        return error
    return type(error)(rule=(FilePath(name), ": ", *error.parts()))


def refusal_as_json(error: HushsumError) -> dict[str, Any]:
    """An error as data; unlike in a problem document of the service, paths keep their folders."""
    return {
        "kind": error.kind,
        "parameter": error.parameter,
        "rule": _as_json(error.rule),
        "got": error.got,
        "remedy": None if error.remedy is None else _as_json(error.remedy),
    }


def refusal_from_json(found: dict[str, Any]) -> HushsumError:
    """The error of a worker."""
    return KINDS[found["kind"]](
        parameter=found["parameter"],
        rule=_from_json(found["rule"]),
        got=found["got"],
        remedy=None if found["remedy"] is None else _from_json(found["remedy"]),
    )


def _as_json(words: Words) -> list[Any]:
    return [
        {"file": os.fspath(each.path), "service": each.service, "quoted": each.quoted}
        if isinstance(each, FilePath)
        else words_as_json(each)
        for each in parts_of(words)
    ]


def _from_json(found: list[Any]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for each in found:
        if isinstance(each, dict) and "file" in each:
            parts.append(FilePath(each["file"], service=each["service"], quoted=each["quoted"]))
        else:
            parts += parts_of(words_from_json(each))
    return tuple(parts)
