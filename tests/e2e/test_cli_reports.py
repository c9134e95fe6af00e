"""``hushsum report`` and ``hushsum collect``: from terms to a function, and what each refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.cli_process import Shell

POINTS = ("--columns", "weight,height", "--bandwidth", "20", "--bounds", "0:200", "--rows", "40")


@pytest.fixture
def town(tmp_path: Path, quick_command: Path) -> Shell:
    shell = Shell(tmp_path, [quick_command])
    shell.ok("collect", "terms", *POINTS, "--width", "30", "--epsilon", "2", "-o", "terms.json")
    return shell


def test_reports_become_a_function(town: Shell) -> None:
    made = [town.ok("report", "terms.json", "--at", "63.5,170").text.strip()]
    # Not in the list of processes, nor in the shell's history.
    made.append(town.ok("report", "terms.json", "--at", "-", stdin=b"81,178\n").text.strip())
    made.append(town.ok("report", "terms.json", "--at", "81,178", "--json").json["report"])
    assert {len(each) for each in made} == {24}
    (town.folder / "reports.txt").write_text("\n".join(made) + "\n")
    released = town.ok("collect", "reports", "terms.json", "reports.txt", "-o", "town.hush", "--json").json
    assert (released["reports"], released["local_epsilon"]) == (3, 2.0)
    assert released["claim"]["epsilon"] == 2.0
    assert town.ok("query", "town.hush", "--at", "70,175", "--json").json
    # One line of somebody else's is named, and nothing is written.
    (town.folder / "reports.txt").write_text("\n".join([made[0], "x" * 24, made[1]]))
    said = town.refused(5, "collect", "reports", "terms.json", "reports.txt", "-o", "other.hush")
    assert "in place of report 2" in said


@pytest.mark.parametrize("at", ["secret", "63.5;seventy", "7e1,1x70"])
def test_a_refused_record_is_not_repeated(town: Shell, at: str) -> None:
    for arguments, stdin in (((at,), b""), (("-",), at.encode())):
        said = town.refused(2, "report", "terms.json", "--at", *arguments, stdin=stdin)
        assert not any(part in said for part in at.replace(";", ",").split(",") if len(part) > 3), said


@pytest.mark.parametrize("at", ["3.7,5", "9007199254740993", "inf", "nan,2"])
def test_members_of_a_set_are_integers(town: Shell, at: str) -> None:
    town.ok("collect", "terms", "--kernel", "jaccard", "--rows", "20", "--epsilon", "1", "-o", "sets.json")
    assert len(town.ok("report", "sets.json", "--at", "3,17,20").text.strip()) == 24
    assert "integers" in town.refused(2, "report", "sets.json", "--at", at)
