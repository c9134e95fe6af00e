"""``hushsum audit`` as a process."""

from __future__ import annotations

import pytest
from tests.e2e.cli_process import Shell
from tests.e2e.conftest import QuickShell

import hushsum as hs
from hushsum.auditing import Step, audit_steps, noise_steps, smoke_steps


def test_a_release_is_audited(shell: Shell) -> None:
    ended = shell.ok("audit", "ok.hush")
    assert "lower bound" in ended.text
    assert "power" in ended.text
    assert "claims hold" in ended.text
    assert ended.err == ""


def test_without_a_file_the_steps_of_everything_are_run(
    quick: QuickShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them; ``tests/contract/test_audits.py`` runs the others one by one."""
    some = [*audit_steps()[:2], next(noise_steps(thorough=False)), next(smoke_steps(thorough=False))]
    requested: list[object] = []

    def few(target: object = None, *, thorough: bool = False) -> list[Step]:
        requested.append((target, thorough))
        return some

    monkeypatch.setattr("hushsum.operations._answers.audit_steps", few)
    report = quick.ok("audit", "--json").json
    assert requested == [(None, False)]
    assert report["holds"] is True
    assert [row["half"] for row in report["rows"]] == ["sensitivity", "sensitivity", "noise", "smoke"]


@pytest.mark.slow
def test_everything_is_audited_without_a_file(shell: Shell) -> None:
    report = shell.ok("audit", "--json").json
    assert report["holds"] is True
    assert {row["half"] for row in report["rows"]} == {"sensitivity", "noise", "smoke"}
    assert all(row["power"] >= 0.99 for row in report["rows"])


def test_a_function_from_a_pipe(shell: Shell) -> None:
    payload = (shell.folder / "ok.hush").read_bytes()
    assert shell.ok("audit", "-", "--json", stdin=payload).json["holds"] is True


def test_a_broken_claim_ends_with_one_and_a_sentence(shell: Shell) -> None:
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=5, width=5).add([[0.0]])
    tally.release(epsilon=1.0, insecure_noise_seed=1).save(shell.folder / "seeded.hush")
    ended = shell.run("audit", "seeded.hush")
    assert ended.code == 1
    assert "BROKEN" in ended.text
    assert ended.err.splitlines() == ["hushsum: noise source claims known seeds = 0, but has at least 1"]
    as_json = shell.run("audit", "seeded.hush", "--json")
    assert as_json.code == 1
    assert as_json.json["holds"] is False


def test_a_tally_is_refused(shell: Shell) -> None:
    assert "confidential tally" in shell.refused(5, "audit", "ok.tally")


def test_a_missing_file_is_refused(shell: Shell) -> None:
    shell.refused(2, "audit", "nowhere.hush")
