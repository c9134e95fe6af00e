"""Private heat maps: one release of a grid, then pictures, pages and exports that spend nothing.

Exports for geographic information systems are GeoJSON polygons and GeoTIFF rasters.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, Unpack
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import SuspiciousParameter, UsageError
from hushsum.files import atomic_file
from hushsum.kernels import ColumnKernel, ProfileKernel, named, positive_integer, positive_number
from hushsum.methods import ADAPTIVE_GRID
from hushsum.planning import release
from hushsum.privacy import BookingKeywords, Claim, Relation, StatementKeywords
from hushsum.records import Bounds, DeclaredBounds
from hushsum.releases import BoxesFunction, ReleasedFunction, check_level, normal_quantile

from ._drawing import FORMATS, Picture, PixelMap, check_format, never_negative, save_figure
from ._web_page import web_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "MAP_FORMATS", "MAP_METHOD", "MAP_SIZE", "HeatMap", "LocalScale", "Raster", "geojson", "geotiff",
    "heatmap", "map_kernel",
]  # fmt: skip


# The number of pixels along each side, or (width, height).
Size = int | tuple[int, int]

MAP_SIZE: Final = 512
MAP_METHOD: Final = "grid"
# The suffixes of files that a heat map can be written to.
MAP_FORMATS: Final = (*FORMATS, ".html", ".geojson", ".tif", ".tiff", ".hush")

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
    as_released : bool
        Whether values are drawn as they were released, some below 0, and not those of the non-negative
        version of the function; only these are drawn of a function that has no such version.

    Privacy
    -------
    Everything here is computed from what was released, so using it spends nothing.
    """

    function: ReleasedFunction
    geographic: bool = True
    level: float = 0.95
    as_released: bool = False

    @property
    def drawn(self) -> ReleasedFunction:
        """The function that maps show: the non-negative version, if there is one and it is not declined."""
        return self.function if self.as_released else never_negative(self.function)

    @property
    def claim(self) -> Claim:
        """The claim of the release."""
        return self.function.claim

    @property
    def unit(self) -> str:
        """The unit of the values of a raster."""
        return "records per km²" if self.geographic else "records per unit area"

    @property
    def _area(self) -> float:
        """The integral of the kernel, in the unit of area."""
        kernel: Any = self.function.kernel
        integral = float(kernel.integral()) if isinstance(kernel, ColumnKernel) else math.inf
        if not math.isfinite(integral):
            rule = "must have a kernel with a finite integral, such as the Gaussian, for records per area"
            remedy = "release it with the Gaussian kernel"
            raise UsageError("function", rule, got=kernel.name, remedy=remedy)
        if not self.geographic:
            return integral
        scale = LocalScale.of(self.function.bounds)
        return integral * (scale.longitude * scale.latitude / 1e6)

    @property
    def _aspect(self) -> float | None:
        """Height over width of the box, in metres."""
        bounds = self.function.bounds
        if not self.geographic or bounds is None:
            return None
        scale = LocalScale.of(bounds)
        width, height = (high - low for low, high in zip(bounds.low, bounds.high, strict=True))
        return height * scale.latitude / (width * scale.longitude)

    def raster(self, size: Size = MAP_SIZE) -> Raster:
        """Records per area at the middles of ``size`` × ``size`` pixels, or of (width, height)."""
        return raster_of(self.drawn, size, level=self.level, area=self._area, unit=self.unit)

    def picture(self, size: Size = MAP_SIZE) -> Picture:
        """The map and its words, hatched where no value differs from zero."""
        raster = self.raster(size)
        note = f"Hatched: cannot be distinguished from zero, by {self.level:.0%} intervals for the whole map."
        if isinstance(self.drawn, BoxesFunction):
            note = "Boxes that are small where records are dense. Hatched: no different from zero by "
            note += f"{self.level:.0%} intervals of the mean over each box, by itself."
        elif self.drawn is not self.function:
            note += " Values are the nearest ones that are not negative and fit the number of records."
        caption = f"{note} {self.claim.sentence()}"
        labels = (*self._labels(), self.unit)
        return Picture(f"Private heat map, {self.unit}", caption, PixelMap(raster, self._aspect), labels)

    def figure(self, size: Size = MAP_SIZE) -> Figure:
        """A figure that belongs to no window."""
        return self.picture(size).figure()

    def page(self, *, title: str = "Private heat map") -> str:
        """A self-contained HTML page: the map, a point query and the claim; it loads nothing."""
        if isinstance(self.drawn, BoxesFunction):
            rule = "must have another suffix: a page does not answer boxes of unequal size"
            raise UsageError("output", rule, got=".html", remedy="write .png, .geojson or .tif")
        stream = io.BytesIO()
        self.drawn.save(stream)
        options = {
            "quantity": "area",
            "area": {"factor": 1.0 / self._area, "name": self.unit},
            "aspect": self._aspect,
            "labels": list(self._labels()),
        }
        return web_page(stream.getvalue(), title=title, claim=self.claim.sentence(), options=options)

    def save(self, target: str | os.PathLike[str], *, size: Size = MAP_SIZE) -> None:
        """Write the map in the format of the suffix: a picture (``.png``, ``.svg``, ``.pdf``), an interactive
        page (``.html``), polygons (``.geojson``), a raster of three bands (``.tif``), or the released
        function (``.hush``). A reader sees the old file, none, or the whole new one.
        """
        path = check_format(target, MAP_FORMATS)
        suffix = path.suffix.lower()
        if suffix in FORMATS:
            return save_figure(self.figure(size), path)
        if suffix == ".hush":
            return self.function.save(path)
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


def map_kernel(bounds: object, bandwidth: float, *, geographic: bool) -> tuple[str, float | None]:
    """The Gaussian kernel of a map as text, and its bandwidth: its standard deviation is in metres, or in the
    units of a plane. Warns of boxes in which distances in metres are rough.
    """
    if not geographic:
        return "gaussian", bandwidth
    width = positive_number("bandwidth", bandwidth)
    if not _SMALLEST_KERNEL <= width <= _LARGEST_KERNEL:
        rule = f"must be {_SMALLEST_KERNEL:g} to {_LARGEST_KERNEL:g} metres"
        remedy = "give the distance over which points are smoothed, such as 250"
        raise UsageError("bandwidth", rule, got=f"{width:g}", remedy=remedy)
    scale = LocalScale.of(bounds)
    scale.warn()
    return scale.expression(bandwidth), None


class MapKeywords(BookingKeywords, StatementKeywords, total=False):
    """What :func:`heatmap` hands over to :func:`hushsum.release`."""

    records: int | None
    relation: str | Relation
    population: int | None
    threads: int | None
    allow_clipping: bool


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
    as_released: bool = False,
    adaptive: bool = False,
    **keywords: Unpack[MapKeywords],
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
        projection about the middle of the bounds: :class:`hushsum.plotting.LocalScale`.
    level : float, default 0.95
        Of the intervals, for the whole map together.
    as_released : bool, default False
        Draw values as they were released, some below 0, in place of those of ``function.nonnegative()``.
    adaptive : bool, default False
        Boxes that are small where points are dense, in place of a grid: for maps of a country with its
        cities, under pure ε. The bandwidth is then the finest resolution; see
        :func:`hushsum.methods.adaptive_grid`.
    epsilon, delta, rho, columns
        As for :func:`hushsum.release`.
    **keywords
        ``records``, ``relation``, ``population``, ``threads``, ``allow_clipping``, ``allow_large_delta``,
        ``budget``, ``idempotency_key`` and ``insecure_noise_seed``, as for :func:`hushsum.release`.

    Returns
    -------
    HeatMap

    Privacy
    -------
    The claim is that of :func:`hushsum.release` by the method ``grid`` or ``adaptive_grid``: per
    record, or per what ``relation`` says. The projection depends on the declared bounds alone, and everything
    after the release is post-processing.

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
    kernel, width = map_kernel(box, bandwidth, geographic=geographic)
    function = release(
        points,
        kernel=named(kernel, dim=2, bandwidth=width),
        bounds=bounds,
        method=ADAPTIVE_GRID if adaptive else MAP_METHOD,
        columns=columns,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        **keywords,
    )
    return HeatMap(function, geographic, level, as_released)


# --- pixels -------------------------------------------------------------------------------------------------

MOST_PIXELS = 1 << 24
_CELLS_PER_WIDTH = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Raster:
    """Values at the middles of pixels, shape (height, width), the first row in the south.

    Parameters
    ----------
    value, lower, upper : array of shape (height, width)
        Records per area, and the ends of intervals at ``level`` that hold for the whole raster together; of
        an adaptive map, intervals of the mean over each box by itself.
    bounds : Bounds
        Of all pixels: the outer edges.
    level : float
    unit : str
        What the values are, such as ``"records per km²"``.

    Notes
    -----
    The noise of an answer varies smoothly, within about a bandwidth. So intervals hold together if they do,
    by Bonferroni's inequality, for one query in each cell of half a bandwidth; for a Gaussian kernel in the
    plane, whose noise has exceedances as the Euler characteristic of a smooth Gaussian field counts them
    (Adler and Taylor 2007), that is wider than necessary: 4.9 standard errors against 4.4 in a box of 80 × 80
    bandwidths. How many pixels there are makes no difference.
    """

    value: Floats
    lower: Floats
    upper: Floats
    bounds: Bounds
    level: float
    unit: str

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Where nothing can be distinguished from zero, or is below it: a count is never negative."""
        return np.asarray(self.lower <= 0.0)

    @property
    def middles(self) -> tuple[Floats, Floats]:
        """The middles of the pixels along both columns."""
        height, width = self.value.shape
        x, y = (
            low + (np.arange(number) + 0.5) * ((high - low) / number)
            for low, high, number in zip(self.bounds.low, self.bounds.high, (width, height), strict=True)
        )
        return x, y

    def to_edges(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """The middles, and values there, with one more column and row on each side: what is drawn then
        reaches the edges of the pixels.
        """
        ends = zip(self.middles, self.bounds.low, self.bounds.high, strict=True)
        x, y = (np.concatenate(([low], each, [high])) for each, low, high in ends)
        return x, y, np.pad(values, 1, mode="edge")


def raster_of(function: ReleasedFunction, size: Size, *, level: float, area: float, unit: str) -> Raster:
    """The raster of a function of two columns; ``area`` is the kernel's integral in the unit."""
    bounds = function.bounds
    if function.dim != 2 or bounds is None:
        rule = "a heat map is of a function of two columns with declared bounds"
        raise UsageError(rule, got="another function")
    check_level(level)
    width, height = (size, size) if isinstance(size, int) else size
    positive_integer("size", width, at_most=MOST_PIXELS)
    positive_integer("size", height, at_most=MOST_PIXELS // width)
    empty = np.zeros((height, width))
    raster = Raster(empty, empty, empty, bounds, level, unit)
    x, y = raster.middles
    points = np.stack([each.reshape(-1) for each in np.meshgrid(x, y)], axis=1)
    if isinstance(function, BoxesFunction):
        # What is drawn is the mean over each box: at no pixel alone would it differ from zero.
        sums, reach = function.sum(points), normal_quantile(level) * function.noise(points)
        found = (sums, sums - reach, sums + reach)
    else:
        joint = 1.0 - (1.0 - level) / _places(function, width * height)
        answers = function.query(points, of="sum", level=joint)
        found = (answers.value, answers.lower, answers.upper)
    value, lower, upper = (each.reshape(height, width) / area for each in found)
    return Raster(value, lower, upper, bounds, level, unit)


def _places(function: ReleasedFunction, pixels: int) -> int:
    """How many queries may err independently of each other: cells of half a bandwidth, at most the pixels."""
    kernel, bounds = function.kernel, function.bounds
    assert bounds is not None
    if not isinstance(kernel, ProfileKernel) or not kernel.smooth:
        return pixels
    cells = 1.0
    for low, high, width in zip(bounds.low, bounds.high, kernel.column_widths(), strict=True):
        cells *= math.ceil(_CELLS_PER_WIDTH * (high - low) / width)
    return int(max(1, min(cells, pixels)))


# --- longitude and latitude ---------------------------------------------------------------------------------

# The ellipsoid of WGS 84.
_EQUATOR: Final = 6_378_137.0
_SQUARED_ECCENTRICITY: Final = 0.00669437999014
# From here on a warning says how far distances along parallels are off at the edge of the box.
_STRETCHED: Final = 0.05

_MOST_STRETCHED: Final = 0.5


@dataclass(frozen=True, slots=True)
class LocalScale:
    """Metres per degree of longitude and of latitude, taken as constant in a declared box.

    This is the equidistant cylindrical projection whose standard parallel is the middle of the box: distances
    along meridians, and along the middle parallel, are right to a thousandth; along other parallels they are
    off by ``stretch`` at most. It is linear in each column, so it is applied to the bandwidths of the kernel
    and not to the records: what is released, and queried, is in degrees.

    Parameters
    ----------
    longitude, latitude : float
        Metres per degree.
    stretch : float
        The largest relative error of a distance along a parallel in the box.

    Privacy
    -------
    It is computed from declared bounds alone. A record's place depends on that record alone.

    Examples
    --------
    >>> scale = LocalScale.of([(2.0, 2.7), (48.6, 49.1)])
    >>> round(scale.longitude), round(scale.latitude), round(scale.stretch, 4)
    (73391, 111207, 0.005)
    """

    longitude: float
    latitude: float
    stretch: float

    @classmethod
    def of(cls, bounds: object) -> LocalScale:
        """The scale of a box of longitudes and latitudes in degrees.

        Raises
        ------
        UsageError
            if the box is not on the globe, or so tall that a degree of longitude varies by half.
        """
        box = Bounds.declared(bounds, 2, "a heat map")
        (west, south), (east, north) = box.low, box.high
        if not (west >= -360.0 and east <= 360.0 and east - west <= 360.0 and south > -90.0 and north < 90.0):
            rule = "must be longitudes from -180 to 180 and latitudes between -90 and 90, in that order"
            got = f"{west:g}:{east:g},{south:g}:{north:g}"
            remedy = "swap the columns, or declare that the columns lie in a plane"
            raise UsageError("bounds", rule, got=got, remedy=remedy)
        middle = math.radians((south + north) / 2.0)
        along = _parallel(middle)
        nearest_to_equator = 0.0 if south <= 0.0 <= north else min(abs(south), abs(north))
        edges = (south, north, nearest_to_equator)
        stretch = max(abs(_parallel(math.radians(edge)) / along - 1.0) for edge in edges)
        if stretch > _MOST_STRETCHED:
            rule = "must be a box in which a degree of longitude is about equally long"
            got = f"one in which it differs by {stretch:.0%}"
            raise UsageError("bounds", rule, got=got, remedy="make maps of parts of it")
        return cls(along, _meridian(middle), stretch)

    def warn(self) -> None:
        """Say how far distances are off in a tall box, before anything is spent."""
        if self.stretch > _STRETCHED:
            warnings.warn(
                f"distances from east to west are off by up to {self.stretch:.0%} at the edge of this box, "
                "because meridians meet; maps of parts of it are more faithful",
                SuspiciousParameter,
                stacklevel=4,
            )

    def expression(self, bandwidth: float) -> str:
        """A Gaussian whose standard deviation is ``bandwidth`` metres, for columns in degrees, as text."""
        east, north = bandwidth / self.longitude, bandwidth / self.latitude
        return f"gaussian(0, bandwidth={east!r}) * gaussian(1, bandwidth={north!r})"


def _parallel(latitude: float) -> float:
    """Metres per degree along the parallel at a latitude in radians."""
    radius = _EQUATOR / math.sqrt(1.0 - _SQUARED_ECCENTRICITY * math.sin(latitude) ** 2)
    return math.radians(1.0) * radius * math.cos(latitude)


def _meridian(latitude: float) -> float:
    """Metres per degree along a meridian."""
    shape = 1.0 - _SQUARED_ECCENTRICITY * math.sin(latitude) ** 2
    return math.radians(1.0) * _EQUATOR * (1.0 - _SQUARED_ECCENTRICITY) / math.pow(shape, 1.5)


BANDS: Final = 8
_DIGITS: Final = 12

# Each is an outer ring and its holes.
Polygons = list[list[list[list[float]]]]


def geojson(raster: Raster, *, bands: int = BANDS) -> str:
    """A FeatureCollection (RFC 7946) of ``bands`` levels from 0 to the highest value, and of the area that
    cannot be distinguished from zero. Coordinates are those of the bounds: degrees, for maps.

    Each feature has the ``low`` and ``high`` end of its band and its ``unit``, or ``hidden: true``.
    """
    highest = float(raster.value.max())
    features = []
    if highest > 0.0:
        edges = np.linspace(0.0, highest, bands + 1)
        # Values below 0 are noise; the first band has them, the last one the highest value.
        for low, high in pairwise(edges):
            lowest = -math.inf if low == 0.0 else low
            polygons = _filled(raster, raster.value, lowest, high if high < highest else math.inf)
            band = {"low": float(low), "high": float(high), "unit": raster.unit, "hidden": False}
            features.append(_feature(polygons, band))
    hidden = _filled(raster, np.where(raster.hidden, 1.0, 0.0), 0.5, math.inf)
    features.append(_feature(hidden, {"level": raster.level, "hidden": True}))
    kept = [each for each in features if each["geometry"]["coordinates"]]
    west, south, east, north = (*raster.bounds.low, *raster.bounds.high)
    found = {"type": "FeatureCollection", "bbox": [west, south, east, north], "features": kept}
    return json.dumps(found, allow_nan=False)


def _filled(raster: Raster, values: Floats, low: float, high: float) -> Polygons:
    """The areas between two levels."""
    from contourpy import contour_generator

    generator = contour_generator(*raster.to_edges(values), fill_type="OuterOffset")
    lowest = float(values.min()) - 1.0 if low == -math.inf else low
    highest = float(values.max()) + 1.0 if high == math.inf else high
    filled: Any = generator.filled(lowest, highest)
    points, offsets = filled
    polygons = []
    for corners, starts in zip(points, offsets, strict=True):
        rings = [corners[a:b] for a, b in pairwise(starts)]
        # RFC 7946: outer rings turn to the left, holes to the right.
        polygons.append([_ring(ring, left=number == 0) for number, ring in enumerate(rings)])
    return polygons


def _ring(ring: Floats, *, left: bool) -> list[list[float]]:
    x, y = ring[:, 0], ring[:, 1]
    turns_left = float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) > 0.0
    turned = ring if turns_left == left else ring[::-1]
    return [[round(float(a), _DIGITS), round(float(b), _DIGITS)] for a, b in turned]


def _feature(polygons: Polygons, properties: dict[str, Any]) -> dict[str, Any]:
    geometry = {"type": "MultiPolygon", "coordinates": polygons}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


_ASCII, _SHORT, _LONG, _DOUBLE = 2, 3, 4, 12
_SIZES: Final = {_ASCII: 1, _SHORT: 2, _LONG: 4, _DOUBLE: 8}
_CODES: Final = {_SHORT: "H", _LONG: "I", _DOUBLE: "d"}
_ROWS_A_STRIP: Final = 64
_WGS84: Final = 4326
_HEADER: Final = 8

Entry = tuple[int, int, bytes | list[int] | list[float]]


def geotiff(raster: Raster, *, geographic: bool) -> bytes:
    """A GeoTIFF 1.1 of three bands of 32-bit floats (value, lower, upper), compressed by Deflate.

    Its first row is in the north. It has the coordinate system WGS 84 where it is ``geographic``; else that
    of a plane of no known place.
    """
    height = len(raster.value)
    strips = []
    for band in (raster.value, raster.lower, raster.upper):
        rows = np.ascontiguousarray(band[::-1].astype("<f4"))
        for start in range(0, height, _ROWS_A_STRIP):
            strips.append(zlib.compress(rows[start : start + _ROWS_A_STRIP].tobytes(), 6))
    padded = [strip + b"\0" * (len(strip) % 2) for strip in strips]
    *places, at = accumulate(map(len, padded), initial=_HEADER)
    tags = _tags(raster, geographic=geographic, places=places, sizes=[len(strip) for strip in strips])
    return struct.pack("<2sHI", b"II", 42, at) + b"".join(padded) + _directory(tags, at)


def _tags(raster: Raster, *, geographic: bool, places: list[int], sizes: list[int]) -> list[Entry]:
    height, width = raster.value.shape
    (west, south), (east, north) = raster.bounds.low, raster.bounds.high
    # Model type geographic or projected; pixels are areas; WGS 84, or user-defined.
    keys = [1, 1, 1, 3, 1024, 0, 1, 2 if geographic else 1, 1025, 0, 1, 1]
    keys += [2048, 0, 1, _WGS84] if geographic else [3072, 0, 1, 32767]
    items = "".join(
        f'<Item name="DESCRIPTION" sample="{number}" role="description">'
        f"{escape(f'{name}, {raster.unit}')}</Item>"
        for number, name in enumerate(("value", "lower", "upper"))
    )
    described = f"<GDALMetadata>{items}</GDALMetadata>"
    return [
        (256, _LONG, [width]),
        (257, _LONG, [height]),
        (258, _SHORT, [32, 32, 32]),
        (259, _SHORT, [8]),  # Deflate
        (262, _SHORT, [1]),  # black is zero
        (273, _LONG, places),
        (277, _SHORT, [3]),
        (278, _LONG, [_ROWS_A_STRIP]),
        (279, _LONG, sizes),
        (284, _SHORT, [2]),  # band after band
        (338, _SHORT, [0, 0]),  # two bands that are no colours
        (339, _SHORT, [3, 3, 3]),  # IEEE 754
        (33550, _DOUBLE, [(east - west) / width, (north - south) / height, 0.0]),
        (33922, _DOUBLE, [0.0, 0.0, 0.0, west, north, 0.0]),
        (34735, _SHORT, keys),
        (42112, _ASCII, described.encode() + b"\0"),
    ]


def _directory(tags: list[Entry], at: int) -> bytes:
    """The directory at an offset, followed by the values that do not fit into its entries."""
    start = at + 2 + 12 * len(tags) + 4
    entries, more = b"", b""
    for tag, kind, values in tags:
        value = values if isinstance(values, bytes) else struct.pack(f"<{len(values)}{_CODES[kind]}", *values)
        count = len(value) // _SIZES[kind]
        if len(value) <= 4:
            entries += struct.pack("<HHI", tag, kind, count) + value.ljust(4, b"\0")
        else:
            entries += struct.pack("<HHII", tag, kind, count, start + len(more))
            more += value + b"\0" * (len(value) % 2)
    return struct.pack("<H", len(tags)) + entries + struct.pack("<I", 0) + more
