"""The notebooks of ``examples``, run here; ``python -m tests.docs.notebooks`` draws the gallery."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
GALLERY: Final = Path(__file__).parents[2] / "docs" / "figures" / "gallery"


def notebooks() -> list[Path]:
    """All of them, sorted."""
    return sorted(EXAMPLES.glob("*.ipynb"))


def cells_of(path: Path) -> list[tuple[str, str]]:
    """Kind and text of every cell."""
    found = json.loads(path.read_text())
    return [(each["cell_type"], "".join(each["source"])) for each in found["cells"]]


def run(path: Path, folder: Path) -> dict[str, Any]:
    """Run the code of a notebook in a folder, without a window; its names."""
    import matplotlib

    matplotlib.use("agg", force=True)
    names: dict[str, Any] = {"__name__": "__main__"}
    with chdir(folder):
        for number, (kind, text) in enumerate(cells_of(path)):
            if kind == "code":
                exec(compile(text, f"{path.name}, cell {number}", "exec"), names)
    return names


def draw_gallery() -> None:
    """Run every notebook, and keep its last picture for the documentation."""
    from matplotlib import pyplot

    GALLERY.mkdir(exist_ok=True)
    os.environ.setdefault("MPLBACKEND", "agg")
    for path in notebooks():
        pyplot.close("all")
        with tempfile.TemporaryDirectory() as folder:
            run(path, Path(folder))
        pyplot.gcf().savefig(GALLERY / f"{path.stem}.png", dpi=80)


if __name__ == "__main__":
    draw_gallery()
