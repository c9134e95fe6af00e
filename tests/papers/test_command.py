"""One command for a paper: steps that are resumed, with what remains, and pages that are marked."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from papers.command import QUICK_NOTICE, Step, run_paper

from papers import command


class Paper:
    """Two steps and a page; the second is left out of quick runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ran = folder, list[tuple[str, bool]]()
        seconds: dict[str, tuple[float, float | None]] = {"first": (100.0, 1.0), "second": (300.0, None)}
        self.steps = [
            Step(name, "papers.pages", partial(self._run, name), each) for name, each in seconds.items()
        ]

    def _run(self, name: str, output: Path, quick: bool) -> None:
        self.ran.append((name, quick))

    def page(self, output: Path) -> list[Path]:
        (output / "README.md").write_text("# Page\n", encoding="utf-8")
        return [output / "README.md"]

    def main(self, *arguments: str) -> int:
        given = [*arguments, "--output", str(self.folder)]
        return run_paper("What it runs.", Path("papers/exam"), self.steps, self.page, given)


def test_steps_are_resumed_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paper = Paper(tmp_path)
    assert paper.main("second") == 0
    assert paper.main() == 0
    said = capsys.readouterr()
    assert paper.ran == [("second", False), ("first", False)]
    assert "[2 of 2] first; about 2 min remain" in said.err
    assert paper.main() == 0
    assert len(paper.ran) == 2
    assert paper.main("--again") == 0
    assert len(paper.ran) == 4
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "# Page\n"
    capsys.readouterr()
    assert paper.main("--list") == 0
    assert capsys.readouterr().out == "done    first\ndone    second\n"
    with pytest.raises(SystemExit):
        paper.main("third")


def test_other_sources_make_a_step_missing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = Paper(tmp_path)
    assert paper.main() == 0
    monkeypatch.setattr(command, "made_by", lambda module: "other sources")
    assert paper.main() == 0
    assert [name for name, _ in paper.ran] == ["first", "second"] * 2


def test_a_step_that_fails_is_not_done(tmp_path: Path) -> None:
    paper = Paper(tmp_path)
    failing = Step("first", "papers.pages", lambda output, quick: 1 // 0, (1.0, 1.0))
    with pytest.raises(ZeroDivisionError):
        run_paper("", Path("papers/exam"), [failing], paper.page, ["--output", str(tmp_path)])
    assert paper.main("first") == 0
    assert paper.ran == [("first", False)]


def test_a_quick_run_is_marked_and_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    paper = Paper(tmp_path)
    assert paper.main("--quick") == 0
    assert paper.ran == [("first", True)]
    assert (tmp_path / "README.md").read_text(encoding="utf-8").startswith(QUICK_NOTICE)
    assert paper.main() == 0
    assert paper.ran == [("first", True), ("first", False), ("second", False)]


def test_no_step_begins_after_the_time(tmp_path: Path) -> None:
    paper = Paper(tmp_path)
    assert paper.main("--minutes", "0") == 3
    assert not paper.ran
