"""Reference pages begin with a table of what they describe, as the code has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import page_id
from .reference_contents import pages, with_contents


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_the_table_is_as_the_code_is(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_contents(text) == text, "run python -m tests.docs.reference_contents"
