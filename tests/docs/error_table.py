"""The table of errors in the reference, written from ``hushsum.errors.KINDS``.

``python -m tests.docs.error_table`` writes it anew.
"""

from __future__ import annotations

import inspect
from typing import Final

from hushsum.errors import KINDS, HushsumError

from .pages import DOCS

PAGE: Final = DOCS / "reference" / "errors.md"
_HEAD: Final = "| exception | also a | meaning | kind | HTTP status | exit code |\n"


def table() -> str:
    """One row for every class, in the order of their tree."""
    rows = [_HEAD, "|---|---|---|---|---:|---:|\n"]
    for each in KINDS.values():
        bases = ", ".join(f"`{base.__name__}`" for base in each.__bases__ if base is not HushsumError)
        meaning = " ".join(inspect.cleandoc(each.__doc__ or "").split("\n\n")[0].split())
        cells = [
            f"`{each.__name__}`",
            bases,
            meaning,
            f"`{each.kind}`",
            str(each.status),
            str(each.exit_code),
        ]
        rows.append(f"| {' | '.join(cells)} |\n")
    return "".join(rows)


def with_table(page: str) -> str:
    """The page with its table as the classes are."""
    before, _, rest = page.partition("| exception |")
    _, _, after = rest.partition("\n\n")
    return f"{before}{table()}\n{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
