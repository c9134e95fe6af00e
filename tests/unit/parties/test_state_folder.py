"""What a run keeps is durable, private, and one process's at a time."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hushsum.errors import UsageError
from hushsum.parties import StateFolder


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "run") as state_folder:
        assert state_folder.get("state") is None
        state_folder.put("state", b"one")
        state_folder.put("state", b"two")
        assert state_folder.keep("target", b"first") == b"first"
        assert state_folder.keep("target", b"second") == b"first"
    with StateFolder(tmp_path / "run") as state_folder:
        assert (state_folder.get("state"), state_folder.get("target")) == (b"two", b"first")
        assert state_folder.names() == ["state", "target"]


def test_nobody_else_may_read_it_and_it_says_what_it_is(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "run") as state_folder:
        state_folder.put("state", b"secret")
    folder = tmp_path / "run"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in folder.iterdir())
    assert (folder / "CONFIDENTIAL").read_text().startswith("CONFIDENTIAL")


def test_two_processes_cannot_share_it(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "run"), pytest.raises(UsageError, match="another process"):
        StateFolder(tmp_path / "run")
    StateFolder(tmp_path / "run").close()


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="holds other things"):
        StateFolder(tmp_path)
    with pytest.raises(UsageError, match="must be a folder"):
        StateFolder(tmp_path / "mine")
    with pytest.raises(UsageError, match="must be a folder"):
        StateFolder(tmp_path / "mine" / "run")
    assert {each.name for each in tmp_path.iterdir()} == {"mine"}


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "CONFIDENTIAL"])
def test_names_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    with StateFolder(tmp_path / "run") as state_folder, pytest.raises(ValueError, match="no name"):
        state_folder.put(name, b"")
