"""Private heat maps: one release of a grid, then pictures, pages and exports that spend nothing."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hushsum.errors import UsageError
from hushsum.files.durable_files import atomic_file
from hushsum.heatmaps.geography import LocalScale
from hushsum.heatmaps.geojson import geojson
from hushsum.heatmaps.geotiff import geotiff
from hushsum.heatmaps.raster import Raster, raster_of
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.kernels.parameters import positive_number
from hushsum.planning.release import release
from hushsum.plotting.figure import FAINT, FORMATS, INK, new_figure, save_figure
from hushsum.plotting.ticks import label_ticks
from hushsum.plotting.web_page import web_page
from hushsum.privacy.budget import Budget
from hushsum.privacy.claim import Claim, Relation
from hushsum.records.bounds import Bounds, DeclaredBounds
from hushsum.releases.answers import check_level
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.plot import caption_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE: Final = 512
METHOD: Final = "grid"
SUFFIXES: Final = (*FORMATS, ".html", ".geojson", ".tif", ".tiff", ".hush")
"""Of files that a heat map can be written to."""

_SMALLEST_KERNEL, _LARGEST_KERNEL = 1e-3, 1e7


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """A released density of points in two columns, with what is needed to draw it; public.

    Made by :func:`hushsum.heatmap`, or from a released function of two columns with a Gaussian kernel.

    Attributes
    ----------
    function : ReleasedFunction
        What was released: kernel sums in the units of the columns.
    geographic : bool
        Whether the columns are longitude and latitude in degrees.
    level : float
        Of the intervals that decide what is hatched.

    Privacy
    -------
    Everything here is computed from what was released, so using it spends nothing.
    """

    function: ReleasedFunction
    geographic: bool = True
    level: float = 0.95

    @property
    def claim(self) -> Claim:
        """What the release promises."""
        return self.function.claim

    @property
    def unit(self) -> str:
        """What the values of a raster are."""
        return "records per km²" if self.geographic else "records per unit area"

    @property
    def _area(self) -> float:
        """The integral of the kernel, in the unit of area."""
        kernel: Any = self.function.kernel
        integral = float(kernel.integral()) if isinstance(kernel, ColumnKernel) else math.inf
        if not math.isfinite(integral):
            raise UsageError(
                parameter="function",
                rule="must have a kernel with a finite integral, such as the Gaussian, for records per area",
                got=kernel.name,
                remedy="release it with the Gaussian kernel",
            )
        return integral * self._square_kilometres_per_unit

    @property
    def _scale(self) -> LocalScale:
        return LocalScale.of(self.function.bounds)

    @property
    def _square_kilometres_per_unit(self) -> float:
        return self._scale.longitude * self._scale.latitude / 1e6 if self.geographic else 1.0

    @property
    def _aspect(self) -> float | None:
        """Height over width of the box, in metres."""
        bounds = self.function.bounds
        assert bounds is not None
        width, height = (high - low for low, high in zip(bounds.low, bounds.high, strict=True))
        return height * self._scale.latitude / (width * self._scale.longitude) if self.geographic else None

    def raster(self, size: int | tuple[int, int] = SIZE) -> Raster:
        """Records per area at the middles of ``size`` × ``size`` pixels, or of (width, height)."""
        return raster_of(self.function, size, level=self.level, area=self._area, unit=self.unit)

    def figure(self, size: int | tuple[int, int] = SIZE) -> Figure:
        """A figure that belongs to no window: the map, hatched where no value differs from zero."""
        raster = self.raster(size)
        note = (
            f"Hatched: cannot be distinguished from zero, by {self.level:.0%} intervals "
            "for the whole map together."
        )
        aspect = self._aspect
        height = 6.6 if aspect is None else min(max(6.2 * aspect, 3.2), 9.0) + 1.6
        figure, axes = new_figure(
            title=f"Private heat map, {self.unit}", caption=caption_of(self.claim, note), height=height
        )
        _draw(axes, raster, aspect=aspect, labels=self._labels())
        return figure

    def page(self, *, title: str = "Private heat map") -> str:
        """A self-contained HTML page: the map, a point query and the claim; it loads nothing."""
        stream = io.BytesIO()
        self.function.save(stream)
        options = {
            "quantity": "area",
            "area": {"factor": 1.0 / self._area, "name": self.unit},
            "aspect": self._aspect,
            "labels": list(self._labels()),
        }
        return web_page(stream.getvalue(), title=title, claim=self.claim.sentence(), options=options)

    def save(self, target: str | os.PathLike[str], *, size: int | tuple[int, int] = SIZE) -> None:
        """Write the map in the format of the suffix: a picture (``.png``, ``.svg``, ``.pdf``), an interactive
        page (``.html``), polygons (``.geojson``), a raster of three bands (``.tif``), or the released
        function (``.hush``). A reader sees the old file, none, or the whole new one.
        """
        path = check_suffix(target)
        suffix = path.suffix.lower()
        if suffix in FORMATS:
            save_figure(self.figure(size), path)
            return
        if suffix == ".hush":
            self.function.save(path)
            return
        if suffix == ".html":
            data = self.page(title=path.stem).encode()
        elif suffix == ".geojson":
            data = geojson(self.raster(size)).encode()
        else:
            data = geotiff(self.raster(size), geographic=self.geographic)
        with atomic_file(path, mode=0o644) as stream:
            stream.write(data)

    def _labels(self) -> tuple[str, str]:
        names = self.function.columns
        if names is not None and len(names) == 2:
            return names[0], names[1]
        return ("longitude", "latitude") if self.geographic else ("column 0", "column 1")


def check_suffix(target: str | os.PathLike[str]) -> Path:
    """The path of a map; raises UsageError unless its suffix is one that can be written."""
    path = Path(target)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            parameter="output",
            rule=f"must end in one of {', '.join(SUFFIXES)}",
            got=repr(path.name),
            remedy="rename it",
        )
    return path


def map_kernel(bounds: object, bandwidth: float, *, geographic: bool) -> Kernel:
    """The Gaussian kernel of a map: its standard deviation in metres, or in the units of a plane."""
    if not geographic:
        return GaussianKernel(dim=2, bandwidth=bandwidth)
    return checked_scale(bounds, bandwidth).kernel(bandwidth)


def checked_scale(bounds: object, bandwidth: float) -> LocalScale:
    """The scale of a map of a globe, with a warning where it is a rough one; refuses bandwidths that are no
    metres.
    """
    width = positive_number("bandwidth", bandwidth)
    if not _SMALLEST_KERNEL <= width <= _LARGEST_KERNEL:
        raise UsageError(
            parameter="bandwidth",
            rule=f"must be {_SMALLEST_KERNEL:g} to {_LARGEST_KERNEL:g} metres",
            got=f"{width:g}",
            remedy="give the distance over which points are smoothed, such as 250",
        )
    scale = LocalScale.of(bounds)
    scale.warn()
    return scale


def heatmap(
    points: object,
    *,
    bounds: DeclaredBounds,
    bandwidth: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    geographic: bool = True,
    columns: Sequence[str] | None = None,
    level: float = 0.95,
    records: int | None = None,
    relation: str | Relation = Relation.ADD_REMOVE,
    population: int | None = None,
    allow_large_delta: bool = False,
    budget: Budget | None = None,
    idempotency_key: str | None = None,
    insecure_noise_seed: int | None = None,
    threads: int | None = None,
    allow_clipping: bool = False,
) -> HeatMap:
    """A private heat map of points: density with intervals, to be drawn and exported. Spends the claim.

    Points are counted on a grid and released once. Where noise could explain what is seen, maps are hatched.
    It shows where many points are; single points are what it hides.

    Parameters
    ----------
    points : array-like of shape (n_points, 2), or a frame
        Private: longitude and latitude in degrees, in that order; or two columns of a plane.
    bounds : two pairs (low, high), or a dictionary by column name
        Declared: points outside are clipped to it. The order of a dictionary is that of the map, the first
        column across, unless ``columns`` gives another; further columns of a frame are left out.
    bandwidth : float
        The standard deviation of the Gaussian that points are smoothed with, in metres; in the units of the
        columns if not ``geographic``. Chosen without looking at the data.
    geographic : bool, default True
        Whether the columns are longitude and latitude. Distances are then in metres, by the equidistant
        projection about the middle of the bounds: :class:`hushsum.heatmaps.LocalScale`.
    level : float, default 0.95
        Of the intervals, for the whole map together.
    epsilon, delta, rho, columns, records, relation, population, allow_large_delta, budget, idempotency_key, \
insecure_noise_seed, threads, allow_clipping
        As for :func:`hushsum.release`.

    Returns
    -------
    HeatMap

    Privacy
    -------
    The claim is that of :func:`hushsum.release` by the method ``grid``: per record, or per what ``relation``
    says. The projection depends on the declared bounds alone, and everything after the release is
    post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> town = np.random.default_rng(0).normal((2.35, 48.85), 0.01, size=(20_000, 2))
    >>> map = hs.heatmap(town, bounds=[(2.25, 2.45), (48.80, 48.90)], bandwidth=300, epsilon=1.0)
    >>> map.raster(64).value.shape
    (64, 64)
    """
    check_level(level)
    if columns is None and isinstance(bounds, Mapping):
        columns = tuple(bounds)
    box = Bounds.of(bounds, 2, columns)
    function = release(
        points,
        kernel=map_kernel(box, bandwidth, geographic=geographic),
        bounds=bounds,
        method=METHOD,
        columns=columns,
        records=records,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        population=population,
        allow_large_delta=allow_large_delta,
        budget=budget,
        idempotency_key=idempotency_key,
        insecure_noise_seed=insecure_noise_seed,
        threads=threads,
        allow_clipping=allow_clipping,
    )
    return HeatMap(function, geographic, level)


def _draw(axes: Axes, raster: Raster, *, aspect: float | None, labels: tuple[str, str]) -> None:
    (west, south), (east, north) = raster.bounds.low, raster.bounds.high
    axes.grid(visible=False)
    highest = max(float(raster.value.max()), np.finfo(float).tiny)
    image = axes.imshow(
        raster.value,
        origin="lower",
        extent=(west, east, south, north),
        cmap="viridis",
        vmin=0.0,
        vmax=highest,
        interpolation="nearest",
        aspect="auto" if aspect is None else aspect * (east - west) / (north - south),
    )
    hidden = raster.hidden
    if hidden.any():
        import matplotlib as mpl

        with mpl.rc_context({"hatch.color": "#ffffff", "hatch.linewidth": 0.5}):
            x, y = raster.middles
            if hidden.all():
                axes.add_patch(_hatched_box(raster))
            else:
                axes.contourf(
                    x, y, hidden.astype(float), levels=[0.5, 1.5], colors="none", hatches=["//////"]
                )
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=axes, pad=0.025, fraction=0.12, aspect=22)
    bar.set_label(raster.unit, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=9, length=3, color=FAINT)
    for axis in (axes.xaxis, axes.yaxis, bar.ax.yaxis):
        label_ticks(axis)
    axes.set_xlabel(labels[0], color=INK)
    axes.set_ylabel(labels[1], color=INK)


def _hatched_box(raster: Raster) -> Any:
    from matplotlib.patches import Rectangle

    (west, south), (east, north) = raster.bounds.low, raster.bounds.high
    return Rectangle(
        (west, south), east - west, north - south, fill=False, hatch="//////", edgecolor="white", linewidth=0
    )
