"""What a forge runs is what a person can run: every step of a workflow is a target of the Makefile."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sanitized_build import BUILDS

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MATRIX_VALUE = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")


def make_targets() -> set[str]:
    declared = re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared
    return set(declared[1].split())


def commands(workflow: Path) -> Iterator[str]:
    """Every ``run:`` of a workflow, once for each value of the matrix variable it names."""
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    for job in jobs.values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            command = step.get("run")
            if command is None:
                continue
            named = MATRIX_VALUE.search(command)
            for value in matrix[named[1]] if named else [""]:
                yield MATRIX_VALUE.sub(str(value), command)


def test_there_are_workflows() -> None:
    assert {each.stem for each in WORKFLOWS} >= {"checks", "nightly", "release", "docs", "codeql"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_is_a_make_target(workflow: Path) -> None:
    for command in commands(workflow):
        words = command.split()
        assert words[0] == "make"
        assert set(words[1:]) <= make_targets(), command


def test_the_matrix_has_every_supported_system_compiler_and_python() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())["jobs"]
    tested = jobs["test"]["strategy"]["matrix"]["include"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    prefix = "Programming Language :: Python :: 3."
    supported = {each[len(prefix) - 2 :] for each in project["project"]["classifiers"] if prefix in each}
    assert supported == {"3.11", "3.12", "3.13", "3.14"}
    assert {each["python"] for each in tested} == supported
    assert {each["compiler"] for each in tested} == {"g++", "clang++"}
    systems = {re.sub(r"-\d[\d.]*", "", each["os"]) for each in tested}
    assert systems == {"ubuntu", "ubuntu-arm", "macos"}
    wheels = set(project["tool"]["cibuildwheel"]["build"].split())
    assert wheels == {f"cp{each.replace('.', '')}-*" for each in supported}
    assert "oldest" in jobs


def test_sanitizers_and_fuzzing_are_scheduled() -> None:
    nightly = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())
    # YAML 1.1 reads the key "on" as true.
    assert nightly[True]["schedule"]
    assert {"sanitize", "fuzz", "coverage", "test-slow"} <= set(
        nightly["jobs"]["slow"]["strategy"]["matrix"]["target"]
    )


def test_the_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in make_targets():
        assert re.search(rf"^([\w-]+ )*{re.escape(target)}( [\w-]+)*:", makefile, re.MULTILINE), target


def test_the_tests_that_targets_name_exist() -> None:
    named = re.findall(r"tests/[\w/]+\.py", (ROOT / "Makefile").read_text())
    named += [each for build in BUILDS.values() for each in build.tests]
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_target_is_documented() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert [target for target in make_targets() if f"`make {target}`" not in contributing] == []
