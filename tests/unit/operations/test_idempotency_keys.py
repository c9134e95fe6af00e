"""The automatic key of a command: the same for the same settings, whatever a later version adds to them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hushsum.files import canonical_json, declared_fields
from hushsum.operations import RecordFiles, release_key
from hushsum.planning import KernelSpec, MethodSpec, TableSpec
from hushsum.records import CellFormat


@dataclass(frozen=True)
class Today:
    name: str
    rows: int | None = None
    share: Fraction = Fraction(1, 50)


@dataclass(frozen=True)
class Tomorrow(Today):
    encoding: str = "utf-8"
    columns: tuple[str, ...] = ()
    cells: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n", encoding="utf-8")
    return str(path)


def test_a_field_that_a_later_version_adds_does_not_change_the_key(source: str) -> None:
    for given in ({}, {"rows": 5}, {"rows": 5, "share": Fraction(1, 3)}):
        assert release_key(source, Today("x", **given)) == release_key(source, Tomorrow("x", **given))
    assert release_key(source, Today("x")) != release_key(source, Today("x", rows=5))
    assert release_key(source, Tomorrow("x")) != release_key(source, Tomorrow("x", encoding="latin-1"))


CHOICES: list[Any] = [KernelSpec(), TableSpec(), MethodSpec(), CellFormat(), RecordFiles(("x.csv",))]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda each: type(each).__name__)
def test_settings_of_commands_are_json_without_their_defaults(choice: Any) -> None:
    assert is_dataclass(choice)
    found = declared_fields(choice)
    assert canonical_json(found)
    assert set(found) <= {"paths"} & {each.name for each in fields(choice)}
