"""One look for all pictures, and files that appear whole or not at all."""

from __future__ import annotations

import io
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hushsum.errors import UsageError
from hushsum.files.durable_files import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, distinguishable under every common kind of colour blindness.
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
INK: Final = "#262626"
FAINT: Final = "#8a8a8a"
GRID: Final = "#e3e3e3"

FORMATS: Final = (".png", ".svg", ".pdf")
_CAPTION_LETTERS: Final = 108
_LEFT: Final = 0.13
"""Where the axes begin: left of them is room for numbers such as −200,000 and their label."""


def check_format(path: str | os.PathLike[str]) -> Path:
    """The path of a picture; raises UsageError unless its suffix is one that can be drawn."""
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise UsageError(
            parameter="output",
            rule=f"must end in one of {', '.join(FORMATS)}",
            got=f"{file.name!r}",
            remedy="rename it",
        )
    return file


def new_figure(
    *, title: str, caption: str, width: float = 8.0, height: float = 4.8, pyplot: bool = False
) -> tuple[Figure, Axes]:
    """An empty figure with its title above and its caption below.

    It belongs to no window, unless ``pyplot`` makes it the current figure, which notebooks and
    ``pyplot.show()`` display.
    """

    lines = textwrap.wrap(caption, _CAPTION_LETTERS)
    foot = (0.24 + 0.17 * len(lines)) / height
    if pyplot:
        from matplotlib import pyplot as windows

        figure = windows.figure(figsize=(width, height), facecolor="white")
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), dpi=150, facecolor="white")
    axes = figure.add_axes((_LEFT, foot + 0.5 / height, 0.965 - _LEFT, 1.0 - foot - 1.05 / height))
    figure.text(_LEFT, 1.0 - 0.36 / height, title, fontsize=13, color=INK, fontweight="bold", ha="left")
    figure.text(_LEFT, foot - 0.12 / height, "\n".join(lines), fontsize=8, color=FAINT, ha="left", va="top")
    _plain(axes)
    return figure, axes


def bare_figure(*, width: float = 4.0, height: float = 2.6) -> tuple[Figure, Axes]:
    """A small empty figure without words; it belongs to no window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=90, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    _plain(axes)
    return figure, axes


def _plain(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.grid(color=GRID, linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, length=3, color=FAINT)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture in the format of its suffix; a reader sees the old file, none, or the whole new one.

    It is drawn in memory first, since drawing engines report a full disk each in its own way.
    """
    file = check_format(path)
    suffix = file.suffix.lower()
    # No date in the file: the same picture has the same bytes.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=suffix[1:], metadata=metadata)
    with atomic_file(file, mode=0o666) as stream:
        stream.write(drawn.getbuffer())
