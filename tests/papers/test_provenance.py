"""Results name the sources that made them, and a check names those that others have made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from papers.provenance import (
    CHANGED,
    CURRENT,
    OTHER_LIBRARY,
    UNKNOWN,
    cited,
    experiment_digest,
    library_digest,
    made_by,
)

from papers import provenance

PAPERS = Path(provenance.__file__).parent


def project(root: Path) -> Path:
    """Two modules of an experiment, one beside it, and a library."""
    for name, text in {
        "papers/exam/runs.py": "from papers.exam.sums import total\nfrom papers.exam import parts\n"
        "from papers.provenance import made_by\n",
        "papers/provenance.py": "",
        "papers/exam/sums.py": "total = sum\n",
        "papers/exam/parts.py": "",
        "papers/exam/drawing.py": "from papers.exam.runs import total\n",
        "src/hushsum/a.py": "x = 1\n",
        "src/native/b.cpp": "int y;\n",
    }.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def test_what_an_experiment_imports_is_part_of_its_digest(tmp_path: Path) -> None:
    root = project(tmp_path)
    before = experiment_digest("papers.exam.runs", root)
    (root / "papers/exam/drawing.py").write_text("# not imported\n", encoding="utf-8")
    assert experiment_digest("papers.exam.runs", root) == before
    (root / "papers/provenance.py").write_text("made_by = str\n", encoding="utf-8")
    assert experiment_digest("papers.exam.runs", root) == before
    sums = root / "papers/exam/sums.py"
    sums.write_text("total = sum  # of '#' numbers\n", encoding="utf-8")
    assert experiment_digest("papers.exam.runs", root) == before
    seen = {before}
    for name in ("runs", "sums", "parts"):
        file = root / f"papers/exam/{name}.py"
        file.write_text(file.read_text(encoding="utf-8") + "'# more'\n", encoding="utf-8")
        seen.add(experiment_digest("papers.exam.runs", root))
    assert len(seen) == 4


@pytest.mark.parametrize("file", ["src/hushsum/a.py", "src/native/b.cpp"])
def test_the_check_names_what_has_changed(tmp_path: Path, file: str) -> None:
    root = project(tmp_path)
    module = "papers.exam.runs"
    made = f"{module} {experiment_digest(module, root)}, library {library_digest(root)}"
    page = root / "page.md"
    page.write_text(f"By hushsum 1 ({made}).\n\nBy hushsum ({UNKNOWN}).\n", encoding="utf-8")
    assert [(each.line, each.status) for each in cited(page, root)] == [(1, CURRENT), (3, UNKNOWN)]
    (root / file).write_text("changed", encoding="utf-8")
    library_digest.cache_clear()
    assert [(each.status, each.stale) for each in cited(page, root)] == [
        (OTHER_LIBRARY, False),
        (UNKNOWN, True),
    ]
    (root / "papers/exam/sums.py").write_text("total = max\n", encoding="utf-8")
    assert [(each.status, each.stale) for each in cited(page, root)] == [(CHANGED, True), (UNKNOWN, True)]


def test_the_command_and_the_module_agree() -> None:
    found = [each for page in sorted(PAPERS.rglob("*.md")) for each in cited(page)]
    ran = subprocess.run(
        [sys.executable, "-m", "papers.provenance"], cwd=PAPERS.parent, capture_output=True, text=True
    )
    expected = [f"{each.page}:{each.line}: {each.module}: {each.status}" for each in found]
    assert ran.stdout.splitlines() == expected, ran.stderr
    assert ran.returncode == int(any(each.stale for each in found))


def test_every_result_of_the_pages_names_its_sources_or_that_they_are_not_known() -> None:
    pages = sorted(PAPERS.rglob("*.md"))
    found = [each for page in pages for each in cited(page)]
    assert found
    for page in pages:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            # A commit is not something that a reader of the page could look up.
            assert not re.search(r"0\.\d+\.\d+ \([0-9a-f]{6,10}\+?\)", line), f"{page.name}:{number}"
            versions = len(re.findall(r"hushsum (?:\d+\.\d+\.\d+ )?\(", line))
            named = [each for each in cited(page) if each.line == number]
            assert len(named) == versions, f"{page.name}:{number}"


def test_what_made_a_result_is_read_from_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"By hushsum {made_by('papers.private_race.paper_regression')}.\n", encoding="utf-8")
    (found,) = cited(page)
    assert (found.module, found.status) == ("papers.private_race.paper_regression", CURRENT)
