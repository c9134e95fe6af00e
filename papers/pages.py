"""Pages of results: text is written by hand in Markdown, and a run fills in its numbers and tables.

A page has a pair of comments around whatever a run writes:

    Means over <!-- repetitions -->16<!-- /repetitions --> repetitions.

    <!-- figure_2 -->
    | ε | error |
    ...
    <!-- /figure_2 -->
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from papers.data import marked

_PART: Final = re.compile(r"<!-- (?P<name>[\w-]+) -->(?P<body>.*?)<!-- /(?P=name) -->", re.DOTALL)


def fill_page(page: Path, parts: Mapping[str, str], folder: Path) -> Path:
    """Write a page into a folder, with these parts; returns the file that was written.

    Other parts are left as they are where the page itself is written, and are empty in another folder, whose
    results are those of another run.

    Raises
    ------
    KeyError
        if the page has no place for one of the parts.
    """
    text = page.read_text(encoding="utf-8")
    same = folder.resolve() == page.parent.resolve()

    def filled(found: re.Match[str]) -> str:
        name, body = found["name"], found["body"]
        written = parts.get(name, body if same else "").strip()
        around = "\n\n" if "\n" in body and written else "\n" if "\n" in body else ""
        return f"<!-- {name} -->{around}{written}{around}<!-- /{name} -->"

    places = {found["name"] for found in _PART.finditer(text)}
    if not parts.keys() <= places:
        raise KeyError(f"{page.name} has no place for {', '.join(sorted(parts.keys() - places))}")
    file = folder / page.name
    file.write_text(marked(_PART.sub(filled, text)), encoding="utf-8")
    return file
