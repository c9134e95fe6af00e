"""Which sources made a result, and which results on the pages are of other sources than those that are here.

``python -m papers.provenance`` lists every result of the pages that names sources, with what has changed
since; it exits with 1 if the experiment itself has. A result is made by an *experiment*, a module of
``papers`` with the modules of ``papers`` that it imports, and by the *library*, Python and C++. Both have
digests, so nothing depends on a history of commits; comments of an experiment do not count.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from papers.data import stand_ins

from hushsum.version import __version__

_ROOT: Final = Path(__file__).parent.parent
_THIS: Final = "papers.provenance"
"""Also where this module runs as a command, with another ``__name__``."""

UNKNOWN: Final = "sources not recorded"
_MADE: Final = re.compile(
    r"(?P<module>papers(?:\.\w+)+) (?P<experiment>[0-9a-f]{8}), library (?P<library>[0-9a-f]{8})"
)


@cache
def made_by(module: str) -> str:
    """``0.1.0 (papers.x.y 1a2b3c4d, library 5e6f7a8b)``: the sources of an experiment, by its module.

    Stand-ins among the data are named. It is read once, when a run begins.

    >>> made_by("papers.provenance").split()[0] == __version__
    True
    """
    data = ", synthetic data" if stand_ins() else ""
    return f"{__version__} ({module} {experiment_digest(module)}, library {library_digest()}){data}"


def experiment_digest(module: str, root: Path = _ROOT) -> str:
    """Of a module's source, and of all modules of ``papers`` that it imports, directly or not."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = root.joinpath(*name.split(".")).with_suffix(".py")
        # The module that records sources is no part of what they compute.
        if name not in found and file.is_file() and name != _THIS:
            found[name] = file
            waiting += _imported(ast.parse(file.read_text(encoding="utf-8")))
    return _digest((name, _without_comments(found[name])) for name in sorted(found))


def _without_comments(file: Path) -> bytes:
    """The lines of a source that have more than a comment, without comments."""
    lines = file.read_text(encoding="utf-8").splitlines()
    with file.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(filter(None, lines)).encode()


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "papers":
            yield str(node.module)
            yield from (f"{node.module}.{each.name}" for each in node.names)


@cache
def library_digest(root: Path = _ROOT) -> str:
    """Of the library's sources in Python and C++."""
    files = [*(root / "src/hushsum").rglob("*.py"), *(root / "src/native").rglob("*")]
    named = sorted((file.relative_to(root).as_posix(), file) for file in files if file.is_file())
    return _digest((name, file.read_bytes()) for name, file in named)


def _digest(files: Iterator[tuple[str, bytes]]) -> str:
    digest = sha256()
    for name, content in files:
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Cited:
    """Sources that a page names for some of its results."""

    page: str
    line: int
    module: str
    status: str

    @property
    def stale(self) -> bool:
        """Whether the experiment has changed since, or its sources are not known."""
        return self.status in (CHANGED, UNKNOWN)


CURRENT: Final = "current"
CHANGED: Final = "stale: the experiment has changed since"
OTHER_LIBRARY: Final = "the library has changed since"


def cited(page: Path, root: Path = _ROOT) -> list[Cited]:
    """All that a page names, in the order of the page."""
    found = []
    name = page.relative_to(root).as_posix() if page.is_relative_to(root) else page.name
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        for made in _MADE.finditer(line):
            if made["experiment"] != experiment_digest(made["module"], root):
                status = CHANGED
            else:
                status = CURRENT if made["library"] == library_digest(root) else OTHER_LIBRARY
            found.append(Cited(name, number, made["module"], status))
        found += [Cited(name, number, "–", UNKNOWN)] * line.count(f"({UNKNOWN})")
    return found


def main() -> int:
    """Print the sources of all pages; 1 if a result is stale."""
    found = [each for page in sorted((_ROOT / "papers").rglob("*.md")) for each in cited(page)]
    for each in found:
        print(f"{each.page}:{each.line}: {each.module}: {each.status}")
    return int(any(each.stale for each in found))


if __name__ == "__main__":
    sys.exit(main())
