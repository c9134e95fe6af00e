"""How Hushsum is installed is said on one page, which the day of a release changes."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/how-to/install.md"
FROM_AN_INDEX = re.compile(r"pip3? install[^\n#|]*\bhushsum\b(?!/)")
"""``pip install hushsum`` and ``pip install 'hushsum[service]'``, not ``/opt/hushsum/bin/pip install .``."""


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [each for each in listed.stdout.splitlines() if (ROOT / each).is_file()]


def test_no_other_place_says_how_to_install_from_an_index() -> None:
    found = []
    for name in tracked():
        if name in (PAGE, "tests/project/test_install_page.py", "CHANGELOG.md"):
            continue
        text = (ROOT / name).read_bytes().decode("utf-8", "ignore")
        found += [f"{name}: {each}" for each in FROM_AN_INDEX.findall(text)]
    assert found == []


def test_the_page_names_every_extra_that_a_user_can_choose() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for_developers = {"test", "dev", "fuzz", "docs"}
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    first_cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    rows = {name for cell in first_cells for name in re.findall(r"`([\w-]+)`", cell)}
    assert rows == set(project["optional-dependencies"]) - for_developers
