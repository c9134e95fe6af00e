"""Services for attacks: each in a folder of its own, with its people let in already."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.in_process_service import Town


@pytest.fixture(scope="session")
def founded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Town, Path]:
    """A town with its people and nothing else, and its state folder."""
    folder = tmp_path_factory.mktemp("founded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        return Town(folder), folder / "state"


@pytest.fixture
def found_town(
    founded: tuple[Town, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Town]:
    """Makes a town, on settings of its own."""
    shutil.copytree(founded[1], tmp_path / "state")
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))

    def make(**settings: Any) -> Town:
        return Town(tmp_path, founded[0], **settings)

    return make


@pytest.fixture
def town(found_town: Callable[..., Town]) -> Town:
    return found_town()
