"""Where a classifier predicts which class, and how probable each class is along one column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.plotting.figure import BLUE, INK, VERMILION
from hushsum.plotting.ticks import label_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#262626")
"""Okabe and Ito's palette; from the ninth class on colours repeat."""


@dataclass(frozen=True, slots=True)
class ClassMap:
    """The most probable class on a grid, by its number, and its probability; shape (len(y), len(x))."""

    x: Floats
    y: Floats
    largest: NDArray[np.int64]
    probability: Floats


def draw_class_map(
    axes: Axes,
    found: ClassMap,
    names: Sequence[str],
    *,
    x_label: str,
    y_label: str,
    centres: Floats | None = None,
) -> None:
    """Colour every place by its most probable class, the paler the less probable that is; mark centres."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    axes.grid(visible=False)
    colours = np.array([to_rgb(COLOURS[i % len(COLOURS)]) for i in range(len(names))])
    # An equal probability of all classes is white.
    even = 1.0 / len(names)
    certainty = np.clip((found.probability - even) / max(1.0 - even, 1e-9), 0.0, 1.0)[..., None]
    image = 1.0 + (colours[found.largest] - 1.0) * (0.15 + 0.75 * certainty)
    extent = (float(found.x[0]), float(found.x[-1]), float(found.y[0]), float(found.y[-1]))
    axes.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="nearest")
    if centres is not None:
        axes.scatter(centres[:, 0], centres[:, 1], marker="+", s=80, linewidths=1.8, color=INK, zorder=3)
        axes.set_xlim(extent[0], extent[1])
        axes.set_ylim(extent[2], extent[3])
    handles = [Patch(color=colours[i], label=name) for i, name in enumerate(names)]
    axes.legend(handles=handles, frameon=True, fontsize=9, labelcolor=INK)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    for axis in (axes.xaxis, axes.yaxis):
        label_ticks(axis)


def draw_class_curves(axes: Axes, x: Floats, shares: Floats, names: Sequence[str], *, x_label: str) -> None:
    """The probability of every class along one column."""
    for number, name in enumerate(names):
        axes.plot(x, shares[:, number], color=COLOURS[number % len(COLOURS)], linewidth=1.8, label=name)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel("probability", color=INK)
    label_ticks(axes.xaxis)
    label_ticks(axes.yaxis)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
