"""The installer of the Makefile gives uv the indexes, folders and certificates of pip's configuration."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "requirements" / "install.py"
CONFIGURED = """\
:env:.find-links='/wheels'
global.cert='/certificates.crt'
global.extra-index-url='https://first/simple file:///second/simple'
global.find-links='/older'
global.index-url='https://mirror/simple'
"""


@pytest.fixture(scope="module")
def installer() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_the_settings_of_pip_become_options_of_uv(installer: dict[str, Any]) -> None:
    found = installer["settings"](CONFIGURED.splitlines())
    assert found["cert"] == ["/certificates.crt"]
    assert list(installer["options"](found)) == [
        *("--default-index", "https://mirror/simple"),
        *("--index", "https://first/simple", "--index", "file:///second/simple"),
        *("--find-links", "/wheels"),
        "--index-strategy=unsafe-best-match",
    ]


def test_nothing_is_added_where_pip_is_not_configured(installer: dict[str, Any]) -> None:
    assert list(installer["options"](installer["settings"]([""]))) == []
    assert list(installer["options"](installer["settings"](["global.no-index='true'"]))) == ["--no-index"]


class Called:
    """Stands in for `subprocess.run`: pip cannot install uv here, or uv fails."""

    def __init__(self, fails: str) -> None:
        self.fails, self.commands = fails, list[list[str]]()

    def __call__(self, command: list[str], **options: Any) -> Any:
        self.commands.append(command)

        class Done:
            returncode = int(self.fails in command)
            stdout = ""

        return Done


@pytest.mark.parametrize("fails", ["uv", "--reinstall-package"])
def test_pip_installs_where_uv_cannot(
    installer: dict[str, Any], fails: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Called(fails)
    monkeypatch.setattr("subprocess.run", run)
    assert installer["main"]([".[test]"]) == 0
    assert run.commands[-1][1:] == ["-m", "pip", "install", "--quiet", ".[test]"]
    assert "with pip" in capsys.readouterr().err
