"""A web page of one released function in one file: it works offline, and asks no server for anything.

The page holds the bytes of the ``.hush`` file and the reader of ``src/browser``. Its content security policy
allows the page's own script and style by their hashes, and no connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

_INSTALLED: Final = Path(__file__).parents[1] / "_browser"
_SOURCE: Final = Path(__file__).parents[2] / "browser"
_START: Final = "page.js"
_IMPORT: Final = re.compile(r"^import \{([^}]*)\} from \"\./([a-z0-9_]+\.js)\";\n", re.MULTILINE)
_EXPORTED: Final = re.compile(
    r"^export (?=(?:async )?(?:function|class|const|let) ([A-Za-z0-9_]+))", re.MULTILINE
)
_LISTED: Final = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)


def reader_folder() -> Path:
    """Where the reader's files are: in the installed package, or in the source tree."""
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
            visit(other)
        found.append(name)

    visit(start)
    return found


def _exported(text: str) -> list[str]:
    exported: list[str] = _EXPORTED.findall(text)
    for names in _LISTED.findall(text):
        exported += [each.strip() for each in names.split(",") if each.strip()]
    return exported


def _scoped(name: str, text: str) -> str:
    exported = _exported(text)
    text = _LISTED.sub("", _EXPORTED.sub("", text))
    text = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_variable(match[2])};\n", text)
    return f"const {_variable(name)} = (() => {{\n{text}return {{ {', '.join(exported)} }};\n}})();\n"


def _variable(name: str) -> str:
    return "module_" + name.removesuffix(".js")


def web_page(data: bytes, *, title: str, claim: str, options: Mapping[str, Any] | None = None) -> str:
    """The page of a ``.hush`` file.

    Parameters
    ----------
    data : bytes
        The file.
    title : str
        What the page is called.
    claim : str
        The claim in words, which is there before any script runs, and without scripts.
    options : mapping, optional
        What the explorer shows first, as JSON values: ``ranges``, ``aspect``, ``labels``, ``quantity``.
    """
    script = "\n" + reader_script()
    style = (reader_folder() / "explorer.css").read_text(encoding="utf-8") + _PAGE_STYLE
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    # A closing tag in a string would end the script that holds the options.
    shown = json.dumps(dict(options or {}), allow_nan=False).replace("<", "\\u003c")
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
<body class="hushsum">
<header><h1>{name}</h1></header>
<main>
<div id="function">
<p class="claim">{html.escape(claim)}</p>
<noscript><p>The picture and the queries need JavaScript, which runs on this machine alone.</p></noscript>
</div>
</main>
<footer><p>Made with Hushsum. This page holds the released function itself and loads nothing.</p></footer>
<script type="application/json" id="options">{shown}</script>
<script type="application/octet-stream" id="bytes">{base64.b64encode(data).decode()}</script>
<script type="module">{script}</script>
</body>
</html>
"""


_PAGE_STYLE: Final = """
body.hushsum { margin: 0; }
body.hushsum > :is(header, main, footer) { max-width: 60rem; margin: 0 auto; padding: 0 1rem; }
body.hushsum > header { padding-top: 1rem; }
body.hushsum > footer { margin-top: 2rem; color: var(--faint); font-size: 0.85rem; }
"""


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
