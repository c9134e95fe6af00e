"""The oldest dependencies that are tested are the lower bounds that are declared."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BOUND = re.compile(r"^(?P<name>[\w.-]+)(?:\[[\w,]+\])?>=(?P<version>[\d.]+)")


def test_every_lower_bound_is_tested_exactly() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [
        *project["dependencies"],
        *(each for name in ("ledger", "service", "oidc") for each in extras[name]),
    ]
    bounds = {found["name"]: found["version"] for found in map(_BOUND.match, declared) if found is not None}
    lines = (ROOT / "constraints" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if "==" in line)
    assert set(bounds) | {"psycopg-binary"} == set(tested)
    for name, version in bounds.items():
        assert _padded(tested[name]) == _padded(version), name


def _padded(version: str) -> tuple[int, ...]:
    parts = [int(part) for part in version.split(".")]
    return (*parts, *[0] * (4 - len(parts)))
