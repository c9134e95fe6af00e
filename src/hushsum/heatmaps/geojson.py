"""A raster as GeoJSON: bands of density as polygons, and where nothing can be distinguished from zero."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any, Final

import numpy as np

from hushsum._types import Floats
from hushsum.heatmaps.raster import Raster

BANDS: Final = 8
_DIGITS: Final = 12


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


def _filled(raster: Raster, values: Floats, low: float, high: float) -> list[list[list[list[float]]]]:
    """Polygons, each an outer ring and its holes, between two levels."""
    from contourpy import contour_generator

    x, y = raster.middles
    # Out to the edges of the pixels, so that the bands fill the box.
    ends = zip((x, y), raster.bounds.low, raster.bounds.high, strict=True)
    x, y = (np.concatenate(([low_end], each, [high_end])) for each, low_end, high_end in ends)
    generator = contour_generator(x, y, np.pad(values, 1, mode="edge"), fill_type="OuterOffset")
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


def _feature(polygons: list[list[list[list[float]]]], properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": properties,
        "geometry": {"type": "MultiPolygon", "coordinates": polygons},
    }
