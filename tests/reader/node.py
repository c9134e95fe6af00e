"""Requests to the reader for web pages, run by Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = Path(__file__).with_name("answer.mjs")
_OLDEST = 18


def node() -> str:
    """The path of Node; the test is skipped where there is none."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed: the reader for web pages is not tested (apt-get install nodejs)")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < _OLDEST:
        pytest.skip(f"Node {version.strip()} is too old for the reader for web pages: {_OLDEST} or later")
    return found


def answered(requests: Iterable[dict[str, Any]], *, timeout: float = 120.0) -> list[dict[str, Any]]:
    """One response for each request, in order; the process has 1 GB of memory."""
    lines = "".join(json.dumps(each) + "\n" for each in requests)
    done = subprocess.run(
        [node(), "--max-old-space-size=1024", str(_SCRIPT)],
        input=lines,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
