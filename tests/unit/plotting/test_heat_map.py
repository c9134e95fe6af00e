from __future__ import annotations

import json
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.plotting import HeatMap, LocalScale, Raster, geojson, geotiff
from hushsum.records import Bounds

BOX = [(2.25, 2.45), (48.80, 48.90)]
POINTS = np.random.default_rng(0).normal((2.35, 48.85), 0.008, size=(20_000, 2))


@pytest.fixture(scope="module")
def heat() -> HeatMap:
    return hs.heatmap(POINTS, bounds=BOX, bandwidth=400, epsilon=1.0, insecure_noise_seed=3)


def test_densities_are_records_per_square_kilometre(heat: HeatMap) -> None:
    raster = heat.raster(96)
    scale = LocalScale.of(BOX)
    pixel = 0.2 / 96 * scale.longitude * (0.1 / 96) * scale.latitude / 1e6
    # Noise is symmetric, and what the kernel spreads beyond the box is little.
    assert raster.value.sum() * pixel == pytest.approx(len(POINTS), rel=0.03)
    highest = np.unravel_index(raster.value.argmax(), raster.value.shape)
    x, y = raster.middles
    assert abs(x[highest[1]] - 2.35) < 0.01
    assert abs(y[highest[0]] - 48.85) < 0.01


def test_bounds_by_name_order_the_columns_of_a_frame(heat: HeatMap) -> None:
    frame = pd.DataFrame({"id": 0.0, "lat": POINTS[:, 1], "lon": POINTS[:, 0]})
    box = {"lon": BOX[0], "lat": BOX[1]}
    named = hs.heatmap(frame, bounds=box, bandwidth=400, epsilon=1.0, insecure_noise_seed=3)
    assert named.function.columns == ("lon", "lat")
    np.testing.assert_array_equal(named.raster(16).value, heat.raster(16).value)
    # ``columns`` has the last word on the order.
    columns = ["lon", "lat"]
    turned = dict(reversed(box.items()))
    given = hs.heatmap(
        frame, bounds=turned, columns=columns, bandwidth=400, epsilon=1.0, insecure_noise_seed=3
    )
    np.testing.assert_array_equal(given.raster(16).value, heat.raster(16).value)


def test_hatching_does_not_depend_on_the_number_of_pixels(heat: HeatMap) -> None:
    coarse, fine = heat.raster(64), heat.raster(192)
    same = fine.hidden[1::3, 1::3] == coarse.hidden
    assert same.mean() > 0.99
    assert 0.05 < fine.hidden.mean() < 0.95


def test_intervals_are_those_of_the_function(heat: HeatMap) -> None:
    raster = heat.raster(8)
    x, y = raster.middles
    (answer,) = heat.function.nonnegative().query([[x[3], y[2]]], of="sum")
    assert raster.value[2, 3] == pytest.approx(answer["value"] / heat._area, rel=1e-9)
    # Wider than an interval at one point.
    assert raster.lower[2, 3] < answer["lower"] / heat._area


def test_maps_show_no_negative_density_and_the_released_total(heat: HeatMap) -> None:
    scale = LocalScale.of(BOX)
    noisy = hs.heatmap(POINTS, bounds=BOX, bandwidth=150, epsilon=0.1, insecure_noise_seed=3)
    raster = noisy.raster(96)
    assert raster.value.min() >= 0.0
    assert (raster.lower >= 0.0).all()
    pixel = 0.2 / 96 * scale.longitude * (0.1 / 96) * scale.latitude / 1e6
    # But for what the kernel spreads beyond the box.
    assert raster.value.sum() * pixel == pytest.approx(noisy.function.count, rel=0.03)
    released = HeatMap(noisy.function, as_released=True).raster(96)
    assert released.value.min() < 0.0
    np.testing.assert_array_equal(raster.hidden, released.hidden)
    truth = hs.heatmap(POINTS, bounds=BOX, bandwidth=150, epsilon=1000.0).raster(96).value
    errors = [np.abs(each - truth).sum() for each in (raster.value, np.maximum(released.value, 0.0))]
    assert errors[0] < 0.6 * errors[1]


def test_an_adaptive_map_is_drawn_but_not_as_a_page(tmp_path: Path) -> None:
    heat = hs.heatmap(POINTS, bounds=BOX, bandwidth=100, epsilon=1.0, adaptive=True, insecure_noise_seed=3)
    assert heat.raster(64).value.min() >= 0.0
    heat.save(tmp_path / "map.png", size=64)
    heat.save(tmp_path / "map.hush")
    assert HeatMap(hs.load(tmp_path / "map.hush")).raster(16).value.shape == (16, 16)
    with pytest.raises(UsageError, match="boxes of unequal size"):
        heat.save(tmp_path / "map.html")


def test_maps_of_nothing_are_hatched() -> None:
    """False alarm: with the level of 95 %, 10 of 60 maps or more have a probability below 0.001."""
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.5), bounds=(0, 10))
    shown = 0
    for seed in range(60):
        function = tally.release(epsilon=1.0, insecure_noise_seed=seed)
        shown += not HeatMap(function, geographic=False).raster(64).hidden.all()
    assert shown < 10


def test_files_of_every_suffix(heat: HeatMap, tmp_path: Path) -> None:
    for suffix in (".png", ".html", ".geojson", ".tif", ".hush"):
        heat.save(tmp_path / f"map{suffix}", size=32)
    with Image.open(tmp_path / "map.png") as picture:
        assert picture.size[0] > 500
    assert 'id="bytes"' in (tmp_path / "map.html").read_text()
    assert hs.load(tmp_path / "map.hush")([[2.35, 48.85]]).shape == (1,)
    with pytest.raises(UsageError, match=r"must end in one of .*\.tif"):
        heat.save(tmp_path / "map.jpg")
    suffixes = {path.suffix for path in tmp_path.iterdir()}
    assert suffixes == {".png", ".html", ".geojson", ".tif", ".hush"}


def test_geojson_is_of_closed_rings_that_turn_left(heat: HeatMap) -> None:
    found = json.loads(geojson(heat.raster(48)))
    assert found["bbox"] == [2.25, 48.80, 2.45, 48.90]
    bands = [each for each in found["features"] if not each["properties"]["hidden"]]
    assert len(bands) == 8
    area = 0.0
    for feature in bands:
        for outer, *holes in feature["geometry"]["coordinates"]:
            assert outer[0] == outer[-1]
            assert _area(outer) > 0.0
            area += _area(outer) + sum(_area(hole) for hole in holes)
            assert all(_area(hole) < 0.0 for hole in holes)
    # The bands fill the box, once.
    assert area == pytest.approx(0.2 * 0.1, rel=1e-6)
    hidden = [each for each in found["features"] if each["properties"]["hidden"]]
    assert len(hidden) == 1


def _area(ring: list[list[float]]) -> float:
    x, y = np.array(ring).T
    x, y = x - x[0], y - y[0]
    return float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) / 2.0)


def test_geotiff_has_what_was_written(heat: HeatMap) -> None:
    raster = heat.raster((80, 150))
    data = geotiff(raster, geographic=True)
    tags = _tags(data)
    assert (tags[256], tags[257], tags[277]) == ([80], [150], [3])
    assert tags[33550][:2] == pytest.approx([0.2 / 80, 0.1 / 150])
    assert tags[33922] == pytest.approx([0, 0, 0, 2.25, 48.90, 0])
    keys = dict(zip(tags[34735][4::4], tags[34735][7::4], strict=True))
    assert keys == {1024: 2, 1025: 1, 2048: 4326}
    assert b"upper, records per km" in tags[42112]
    strips = [zlib.decompress(data[a : a + n]) for a, n in zip(tags[273], tags[279], strict=True)]
    read = np.frombuffer(b"".join(strips), "<f4").reshape(3, 150, 80)
    for band, expected in zip(read, (raster.value, raster.lower, raster.upper), strict=True):
        np.testing.assert_array_equal(band, expected[::-1].astype(np.float32))


def _tags(data: bytes) -> dict[int, Any]:
    """The tags of a little-endian TIFF, read by the specification and not by the writer's code."""
    magic, version, at = struct.unpack("<2sHI", data[:8])
    assert (magic, version) == (b"II", 42)
    found: dict[int, Any] = {}
    (number,) = struct.unpack_from("<H", data, at)
    listed = [struct.unpack_from("<HHI4s", data, at + 2 + 12 * i) for i in range(number)]
    assert [each[0] for each in listed] == sorted({each[0] for each in listed})
    for tag, kind, count, inside in listed:
        code, size = {2: ("s", 1), 3: ("H", 2), 4: ("I", 4), 12: ("d", 8)}[kind]
        raw = inside if count * size <= 4 else data[struct.unpack("<I", inside)[0] :]
        if kind == 2:
            found[tag] = raw[:count]
        else:
            found[tag] = list(struct.unpack_from(f"<{count}{code}", raw))
    return found


def test_a_plane_has_no_coordinate_system() -> None:
    points = np.random.default_rng(1).normal(50.0, 10.0, size=(5000, 2))
    heat = hs.heatmap(
        points, bounds=(0, 100), bandwidth=5.0, epsilon=1.0, geographic=False, columns=["x", "y"]
    )
    assert heat.unit == "records per unit area"
    assert heat._labels() == ("x", "y")
    keys = _tags(geotiff(heat.raster(16), geographic=False))[34735]
    assert 4326 not in keys


def test_what_a_heat_map_needs_is_said_before_anything_is_spent() -> None:
    with pytest.raises(UsageError, match="metres"):
        hs.heatmap(POINTS, bounds=BOX, bandwidth=1e9, epsilon=1.0)
    with pytest.raises(UsageError, match="longitudes"):
        hs.heatmap(POINTS, bounds=[(48.0, 49.0), (2.0, 180.0)], bandwidth=100, epsilon=1.0)
    function = hs.grid(hs.EuclideanKernel(2, 1.0), bounds=(0, 10)).release(epsilon=1.0)
    with pytest.raises(UsageError, match="finite integral"):
        HeatMap(function, geographic=False).raster(4)
    line = hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 10)).release(epsilon=1.0)
    with pytest.raises(UsageError, match="two columns"):
        HeatMap(line, geographic=False).raster(4)


def test_a_raster_says_where_its_pixels_are() -> None:
    empty = np.zeros((2, 4))
    raster = Raster(
        empty, empty - 1.0, empty + 1.0, Bounds.declared([(0, 4), (10, 20)], 2, "a test"), 0.95, "records"
    )
    x, y = raster.middles
    assert x.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert y.tolist() == [12.5, 17.5]
    assert raster.hidden.all()
    assert math.isclose(raster.level, 0.95)


def test_a_density_below_zero_is_hidden() -> None:
    """A count is never negative: where noise makes it so, however sure the sign is, nothing is shown."""
    value = np.array([[-40.0, 5.0], [40.0, -5.0]])
    box = Bounds.of([(0, 1), (0, 1)], 2)
    assert box is not None
    raster = Raster(value, value - 18.0, value + 18.0, box, 0.95, "points")
    assert raster.hidden.tolist() == [[True, True], [False, True]]
