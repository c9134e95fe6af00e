"""Puts a page that shows dropped ``.hush`` files into the documentation site."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files

from hushsum.plotting import web_page


def on_files(files: Files, *, config: Any) -> Files:
    """Add the page below ``assets``."""
    page = web_page(None, title="Released functions")
    files.append(File.generated(config, "assets/reader.html", content=page))
    return files
