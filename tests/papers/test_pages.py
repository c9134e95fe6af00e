"""Pages are written by hand, and a run fills in its parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from papers.pages import fill_page

PAGE = """\
Over <!-- n -->2<!-- /n --> runs.

<!-- table -->
| 1 |
<!-- /table -->

<!-- reading -->
Old.
<!-- /reading -->
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "page.md"
    file.write_text(PAGE)
    return file


def test_parts_are_filled_in_and_the_text_around_them_stays(page: Path) -> None:
    text = fill_page(page, {"n": "16", "table": "| 2 |"}, page.parent).read_text()
    assert text.startswith(
        "Over <!-- n -->16<!-- /n --> runs.\n\n<!-- table -->\n\n| 2 |\n\n<!-- /table -->\n"
    )
    assert "Old." in text
    assert fill_page(page, {"n": "16", "table": "| 2 |"}, page.parent).read_text() == text


def test_a_page_of_another_folder_has_the_parts_of_that_run_alone(page: Path, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    text = fill_page(page, {"n": "3"}, tmp_path / "build").read_text()
    assert "Over <!-- n -->3<!-- /n --> runs." in text
    assert "Old." not in text
    assert "| 1 |" not in text
    assert page.read_text() == PAGE


def test_a_part_without_a_place_is_refused(page: Path) -> None:
    with pytest.raises(KeyError, match="no place for figure"):
        fill_page(page, {"figure": ""}, page.parent)
