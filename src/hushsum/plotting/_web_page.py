"""A web page of one released function in one file: it works offline, and asks no server for anything.

The page holds the bytes of the ``.hush`` file and the reader of ``src/browser``. Its content security policy
allows the page's own script and style by their hashes, and no connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from hushsum.errors import FilePath, UsageError
from hushsum.files import atomic_file
from hushsum.releases import (
    BoxesFunction,
    Bundle,
    CombinedFunction,
    NoisyTable,
    NonnegativeFunction,
    Range,
    RealFunction,
    Released,
    ReleasedFunction,
    SharpenedFunction,
    load_released,
)
from hushsum.tables import FourierFeatures

from ._drawing import View, check_format

__all__ = ["reader_folder", "reader_module", "reader_script", "web_page", "write_page"]

_INSTALLED: Final = Path(__file__).parents[1] / "_browser"
_SOURCE: Final = Path(__file__).parents[2] / "browser"
_START: Final = "explorer/page.js"
_STYLES: Final = ("tokens", "base", "parts", "tables", "feedback", "budget", "forms", "charts", "functions")
_IMPORT: Final = re.compile(r"^import \{([^}]*)\} from \"(\.[a-z0-9_./]+\.js)\";[^\n]*\n", re.MULTILINE)
_EXPORTED: Final = re.compile(
    r"^export (?=(?:async )?(?:function|class|const|let) ([A-Za-z0-9_]+))", re.MULTILINE
)
_LISTED: Final = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)


def reader_folder() -> Path:
    """Where the reader and the explorer are: in the installed package, or in the source tree."""
    return _INSTALLED if _INSTALLED.is_dir() else _SOURCE


@cache
def reader_script(start: str = _START) -> str:
    """The reader's modules as one script, each in a scope of its own, those imported before their importers.

    Modules may import names of others by ``import { a, b } from "./other.js"``, and export declarations or a
    list; nothing else is needed, so that no bundler is.
    """
    return "".join(_scoped(name, _source(name)) for name in _in_order(start))


@cache
def reader_module() -> str:
    """The reader without the explorer as one module, for pages that are served: ``readHush`` and what it
    needs.
    """
    start = "released_function.js"
    names = ", ".join(_exported(_source(start)))
    return f"{reader_script(start)}export const {{ {names} }} = {_variable(start)};\n"


def _source(name: str) -> str:
    return (reader_folder() / name).read_text(encoding="utf-8")


def _in_order(start: str) -> list[str]:
    found: list[str] = []

    def visit(name: str) -> None:
        if name in found:
            return
        for _, other in _IMPORT.findall(_source(name)):
            visit(_beside(name, other))
        found.append(name)

    visit(start)
    return found


def _beside(name: str, other: str) -> str:
    """A module by its path in the folder, imported by its path from another one."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), other))


def _exported(text: str) -> list[str]:
    exported: list[str] = _EXPORTED.findall(text)
    for names in _LISTED.findall(text):
        exported += [each.strip() for each in names.split(",") if each.strip()]
    return exported


def _scoped(name: str, text: str) -> str:
    exported = _exported(text)
    text = _LISTED.sub("", _EXPORTED.sub("", text))
    text = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_variable(_beside(name, match[2]))};\n", text)
    return f"const {_variable(name)} = (() => {{\n{text}return {{ {', '.join(exported)} }};\n}})();\n"


def _variable(name: str) -> str:
    return "module_" + name.removesuffix(".js").replace("/", "_")


def web_page(
    data: bytes | None, *, title: str, claim: str = "", options: Mapping[str, Any] | None = None
) -> str:
    """The page of a ``.hush`` file; without one, a page that shows the files which are dropped into it.

    Parameters
    ----------
    data : bytes, optional
        The file.
    title : str
        What the page is called.
    claim : str
        The claim in words, which is there before any script runs, and without scripts.
    options : mapping, optional
        What the explorer shows first, as JSON values: ``ranges``, ``aspect``, ``labels``, ``quantity``.
    """
    script = "\n" + reader_script()
    style = "".join(_source(f"styles/{each}.css") for each in _STYLES)
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    # A closing tag in a string would end the script that holds the options.
    shown = json.dumps({"title": title, **(options or {})}, allow_nan=False).replace("<", "\\u003c")
    name = html.escape(title)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{name}</title>
<style>{style}</style>
</head>
<body class="shared">
<main id="main" tabindex="-1">
<h1>{name}</h1>
<p class="claim">{html.escape(claim)}</p>
<noscript><p>The picture and the queries need JavaScript, which runs on this machine alone.</p></noscript>
</main>
<footer class="foot"><p>Made with Hushsum. This page answers by itself and loads nothing.</p></footer>
<p id="announcer" class="unseen" role="status" aria-live="polite"></p>
<script type="application/json" id="options">{shown}</script>
<script type="application/octet-stream" id="bytes">{base64.b64encode(data or b"").decode()}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# --- files of released functions ----------------------------------------------------------------------------

# The largest function that a page holds: 32 MB.
MOST_BYTES = 1 << 25


def write_page(
    source: str,
    output: str,
    *,
    title: str | None = None,
    range: Sequence[Range] | None = None,
    labels: Sequence[str] | None = None,
    of: str = "sum",
) -> int:
    """Write one self-contained HTML file with a released function, or a model, that answers in the browser;
    returns its size in bytes.

    Parameters
    ----------
    source : str
        A ``.hush`` file.
    output : str
        The page, ``.html``.
    title : str, optional
        Default: the name of the file.
    range : sequence of (low, high), optional
        What to draw of each column, or one for all; default: the declared bounds.
    labels : sequence of str, optional
        Names of the columns; default: as in the file.
    of : {"sum", "mean"}
        What is shown first.

    Raises
    ------
    UsageError
        if the output does not end in ``.html``, or the function is of a kind that a page does not answer.
    """
    path = check_format(output, (".html",))
    if not os.path.isfile(source):
        raise UsageError(("no file ", FilePath(source, quoted=True)))
    with open(source, "rb") as stream:
        released = load_released(stream)
        stream.seek(0)
        data = stream.read()
    check_readable(released, len(data))
    options: dict[str, Any] = {"quantity": of}
    if isinstance(released, ReleasedFunction) and released.dim is not None:
        options |= _options(released, range, labels)
    text = web_page(
        data,
        title=Path(source).stem if title is None else title,
        claim=released.claim.sentence(),
        options=options,
    ).encode()
    with atomic_file(path, mode=0o644) as stream:
        stream.write(text)
    return len(text)


def check_readable(released: Released, size: int) -> None:
    """Refuse what a page cannot answer, with what can."""
    if size > MOST_BYTES:
        rule = f"a page holds a function of at most {MOST_BYTES >> 20} MB"
        remedy = "release fewer rows or rounded cells, or query the file with hushsum query"
        raise UsageError(rule, got=f"{size >> 20} MB", remedy=remedy)
    parts = list(released.parts.values()) if isinstance(released, Bundle) else [released]
    for part in parts:
        if isinstance(part, NonnegativeFunction | SharpenedFunction):
            part = part.function
        if isinstance(part, NoisyTable):
            structured = isinstance(part.basis, FourierFeatures) and part.basis.structured
            if part.basis.in_pages and not structured:
                continue
            what = f"{part.basis.name} tables"
        elif isinstance(part, RealFunction | CombinedFunction) and not isinstance(part, BoxesFunction):
            continue
        else:
            what = f"{type(part).__name__} objects"
        rule = f"a page does not answer {what}"
        raise UsageError(rule, remedy="query the file with hushsum query, or predict with hushsum predict")
    if isinstance(released, Bundle) and not parts:
        rule = "this model holds no released function that a page could answer"
        raise UsageError(rule, remedy="predict with hushsum predict")


def _options(
    function: ReleasedFunction, range: Sequence[Range] | None, labels: Sequence[str] | None
) -> dict[str, Any]:
    dim = function.dim
    assert dim is not None
    found: dict[str, Any] = {}
    if labels is not None:
        if len(labels) != dim:
            raise UsageError("labels", f"must name each of {dim} columns", got=len(labels))
        found["labels"] = list(labels)
    if range is not None:
        pairs = list(range) * (dim if len(range) == 1 else 1)
        if len(pairs) != dim:
            rule = f"must be one low:high, or one for each of {dim} columns"
            raise UsageError("range", rule, got=len(pairs))
        found["ranges"] = [[float(low), float(high)] for low, high in pairs]
    elif function.bounds is None:
        # The same refusal as for a picture: without bounds nothing says where to look.
        View.of(function)
    return found
