"""Puts the reader of ``.hush`` files into the documentation site, for the page that shows dropped files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_READER = Path(__file__).parents[2] / "src" / "browser"


def on_files(files: Files, *, config: Any) -> Files:
    """Add the modules and the style below ``assets/reader``."""
    for path in sorted([*_READER.glob("*.js"), *_READER.glob("*.css")]):
        files.append(File.generated(config, f"assets/reader/{path.name}", abs_src_path=str(path)))
    return files
