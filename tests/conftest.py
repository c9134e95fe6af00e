"""What holds for all tests: reproducible hypothesis, a quick command, and what could not be tested."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import hushsum
from tests.warm_command import warm_command

settings.register_profile("hushsum", deadline=None, derandomize=True)
settings.load_profile("hushsum")

OPTIONAL = {
    "polars": "frames of Polars",
    "pandas": "frames of pandas",
    "opendp": "noise compared with OpenDP's",
    "dp_accounting": "accounting compared with dp-accounting's",
    "playwright": "the page in a browser",
}


@pytest.fixture(scope="session")
def quick_command() -> Iterator[Path]:
    """``hushsum`` as an executable that starts quickly."""
    with warm_command(Path(hushsum.__file__).parents[1]) as path:
        yield path


def missing_parts() -> list[str]:
    """One line for each part of the suite that this machine cannot run."""
    lines = [
        f"{module} is not installed: {what} not tested (pip install '.[test]')"
        for module, what in OPTIONAL.items()
        if importlib.util.find_spec(module) is None
    ]
    if not os.environ.get("HUSHSUM_DATA"):
        lines.append(
            "HUSHSUM_DATA is not set: nothing tested on real data (set it to the folder of datasets)"
        )
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = missing_parts()
    if lines:
        terminalreporter.section("not everything was tested", yellow=True)
        for line in lines:
            terminalreporter.line(line)
