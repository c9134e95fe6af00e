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


def actions() -> Iterator[tuple[str, str]]:
    """Every action that a workflow uses, with what follows it on the line."""
    for workflow in WORKFLOWS:
        for line in workflow.read_text().splitlines():
            used = re.search(r"\buses:\s*(\S+)(.*)$", line)
            if used:
                yield used[1], used[2]


def test_every_action_is_pinned_by_a_commit_with_its_version_beside_it() -> None:
    """A tag or a branch can be moved to other code, which would run with the permissions of the job."""
    found = list(actions())
    assert len(found) >= 20
    for action, rest in found:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", rest), action
    commits: dict[str, set[str]] = {}
    for action, rest in found:
        name, _, commit = action.partition("@")
        commits.setdefault(name, set()).add(commit + rest)
    assert [name for name, several in commits.items() if len(several) > 1] == []


def test_a_release_is_published_by_a_tag_from_a_protected_environment_with_provenance() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    publish = jobs["publish"]
    assert publish["environment"] == "pypi"
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert publish["permissions"] == {"contents": "read", "id-token": "write", "attestations": "write"}
    assert not any("permissions" in job for name, job in jobs.items() if name != "publish")
    used = [step.get("uses", step.get("run", "")).partition("@")[0] for step in publish["steps"]]
    for needed in ("make sbom", "make checksums", "actions/attest"):
        assert used.index(needed) < used.index("make publish"), needed
    assert all(
        step["with"]["persist-credentials"] is False
        for job in jobs.values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    )


@pytest.mark.parametrize("name", ["service", "build", "publish"])
def test_locks_pin_every_file_by_its_digest(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip()]
    assert lines
    for line in lines:
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line.split()[0]


def test_the_service_lock_has_every_dependency_of_the_image() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [
        *project["dependencies"],
        *extras["service"],
        *extras["ledger"],
        *extras["oidc"],
        *extras["excel"],
    ]
    names = {re.split(r"[\[<>=!;~ ]", each)[0].lower().replace("_", "-") for each in needed} - {"hushsum"}
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / "service.lock").read_text(), re.M))
    assert names <= locked
