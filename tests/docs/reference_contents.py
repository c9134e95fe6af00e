"""A table of what each reference page describes, so that the plain file reads well where no site is built.

``python -m tests.docs.reference_contents`` writes the tables anew, from signatures and docstrings.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .pages import DOCS

START: Final = "<!-- contents: written by python -m tests.docs.reference_contents -->"
END: Final = "<!-- end of contents -->"
_DIRECTIVE: Final = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_MOST_PARAMETERS: Final = 7
_FEWEST: Final = 2


def pages() -> list[Path]:
    """Reference pages that take descriptions from docstrings."""
    found = sorted((DOCS / "reference").glob("*.md"))
    return [page for page in found if len(_DIRECTIVE.findall(page.read_text(encoding="utf-8"))) >= _FEWEST]


def with_contents(text: str) -> str:
    """The page with its table, before the first section."""
    names = _DIRECTIVE.findall(text)
    rows = ["| name | what it is |", "|---|---|", *(_row(name) for name in names)]
    table = "\n".join([START, *rows, END])
    if START in text:
        before, rest = text.split(START, 1)
        return before + table + rest.split(END, 1)[1]
    place = min(place for place in (text.find("\n## "), text.find("\n::: ")) if place >= 0)
    return f"{text[:place].rstrip()}\n\n{table}\n{text[place:]}"


def _row(path: str) -> str:
    found, name = _object(path)
    summary = (inspect.getdoc(found) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    plain = re.sub(r":\w+:`~?\.?([^`]*)`", r"`\1`", summary).replace("``", "`")
    first = re.match(r".*?\.(?= |$)", plain)
    sentence = first[0] if first else plain
    return f"| `{name}{_signature(found)}` | {sentence} |"


def _object(path: str) -> tuple[Any, str]:
    """What a directive names: a module, or something in one."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name), name
    except (ImportError, AttributeError):
        return import_module(path), path


def _signature(found: Any) -> str:
    if not callable(found):
        return ""
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        return "(…)"
    shown = [each.name for each in parameters if not each.name.startswith("_")]
    more = ", …" if len(shown) > _MOST_PARAMETERS else ""
    return f"({', '.join(shown[:_MOST_PARAMETERS])}{more})"


if __name__ == "__main__":
    for page in pages():
        page.write_text(with_contents(page.read_text(encoding="utf-8")), encoding="utf-8")
