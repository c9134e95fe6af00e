"""The pixels of a heat map for geographic information systems: GeoJSON polygons and GeoTIFF rasters."""

from __future__ import annotations

import json
import math
import struct
import zlib
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape

import numpy as np

from hushsum._types import Floats

if TYPE_CHECKING:
    from hushsum.plotting._heat_map import Raster

BANDS: Final = 8
_DIGITS: Final = 12

Polygons = list[list[list[list[float]]]]
"""Each is an outer ring and its holes."""


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
