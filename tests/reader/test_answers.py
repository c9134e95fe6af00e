"""What the reader for web pages answers, against Python: golden files, and a small file of further kinds."""

from __future__ import annotations

import io
import json
import math
import re
import tempfile
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.baselines import histogram_tally
from hushsum.plotting import reader_folder
from hushsum.releases import Released
from hushsum.tables import all_bases
from tests.golden import make as tables
from tests.golden import make_points as points
from tests.reader.node import answered
from tests.released_cases import RELEASES

UNANSWERED = {"bernstein-epsilon.hush", "hermite-epsilon.hush"}
CLOSE = 1e-12
NUMBERS = ("value", "stderr", "lower", "upper", "bound")

LINE = np.random.default_rng(1).normal(5.0, 1.0, size=(400, 1))
PLANE = np.random.default_rng(2).normal(5.0, 1.5, size=(400, 2))
SPACE = np.random.default_rng(3).normal(5.0, 1.5, size=(400, 3))
BALL = np.random.default_rng(4).normal(0.0, 0.3, size=(400, 3))
EDGES = np.random.default_rng(5).integers(0, 60, size=(300, 2))


def _released(tally: hs.Tally) -> Released:
    return tally.release(epsilon=1.0, insecure_noise_seed=3)


def _grid(kernel: Any, data: Any, **options: Any) -> Released:
    return hs.grid(kernel, bounds=(0, 10), **options).add(data).release(epsilon=1.0, insecure_noise_seed=3)


def _raised() -> Released:
    found = _grid(hs.GaussianKernel(2, 1.0), PLANE)
    assert isinstance(found, hs.ReleasedFunction)
    return found.nonnegative()


def _race(kernel: Any, data: Any, **options: Any) -> Released:
    given = {"rows": 40, "width": 50, **options}
    return hs.race(kernel, **given).add(data).release(rho=0.5, rows=40, insecure_noise_seed=3)


def _features(kernel: Any, data: Any, **options: Any) -> Any:
    return (
        hs.fourier_features(kernel, features=60, **options).add(data).release(rho=0.5, insecure_noise_seed=3)
    )


def _sharpened() -> Any:
    """Of many records, so that points are found beside the noise."""
    records = np.random.default_rng(2).normal(5.0, 1.0, size=(20_000, 3))
    tally = hs.fourier_features(hs.GaussianKernel(3, 1.0), features=400, bounds=(0, 10), seed=1, axes=4)
    function: Any = tally.add(records).release(rho=0.5, insecure_noise_seed=3)
    found = function.sharpened()
    assert found.explained > 0.9
    return found


def _graph() -> hs.Tally:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "edges.txt")
        np.savetxt(path, EDGES, fmt="%d")
        return hs.methods.count_graph(hs.records.read_edges(path), rows=30, width=40)


def _units(kernel: Any) -> Any:
    return hs.kernels.scaled(kernel, [(0, 10), (0, 20)])


def _step() -> Any:
    pattern = hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 10))
    return hs.stream(pattern, horizon=5, epsilon=1.0, delta=1e-6).add(LINE).step()


def _halves() -> Any:
    return hs.kernels.on_columns(hs.GaussianKernel(1, 1.0), 0, of=2) * hs.kernels.on_columns(
        hs.LaplacianKernel(1, 2.0), 1, of=2
    )


FURTHER: dict[str, tuple[Callable[[], Any], Any]] = {
    "grid of a Euclidean kernel": (lambda: _grid(hs.EuclideanKernel(2, 2.0), PLANE), PLANE),
    "grid of a Manhattan kernel": (lambda: _grid(hs.ManhattanKernel(2, 2.0), PLANE), PLANE),
    "grid of a Laplacian kernel": (lambda: _grid(hs.LaplacianKernel(2, 2.0), PLANE), PLANE),
    "grid of a Matérn kernel": (lambda: _grid(hs.MaternKernel(1, 2.0), LINE), LINE),
    "grid of a product": (lambda: _grid(_halves(), PLANE), PLANE),
    "grid of columns with units": (lambda: _grid(_units(hs.GaussianKernel(2, 0.2)), PLANE), PLANE),
    "grid of a scaled Euclidean kernel": (lambda: _grid(_units(hs.EuclideanKernel(2, 0.2)), PLANE), PLANE),
    "rows of columns with units": (lambda: _race(_units(hs.EuclideanKernel(2, 0.2)), PLANE), PLANE),
    "a step of a stream": (lambda: _step(), LINE),
    "a non-negative version": (lambda: _raised(), PLANE),
    "grid in space": (lambda: _grid(hs.GaussianKernel(3, 2.0), SPACE), SPACE),
    "grid of another degree": (lambda: _grid(hs.GaussianKernel(1, 1.0, power=2), LINE, degree=5), LINE),
    "grid on steps": (lambda: _grid(hs.GaussianKernel(1, 1.0), LINE.round(), steps=1.0), LINE.round()),
    "bins": (
        lambda: _released(histogram_tally(hs.EuclideanKernel(2, 2.0), bounds=(0, 10), bins=6).add(PLANE)),
        PLANE,
    ),
    "structured rows": (
        lambda: _race(hs.EuclideanKernel(3, 2.0, power=2, projection="structured"), SPACE),
        SPACE,
    ),
    "structured signs": (lambda: _race(hs.AngularKernel(3, bits=3, projection="structured"), SPACE), SPACE),
    "signs of padded queries": (
        lambda: _race(
            hs.kernels.AsymmetricAngularKernel(3, bits=4, radius=9.0, query_radius=9.5), SPACE, width=16
        ),
        SPACE,
    ),
    "folded signs": (lambda: _race(hs.AngularKernel(3, bits=40), SPACE), SPACE),
    "rows in a box": (lambda: _race(hs.EuclideanKernel(2, 1.0), PLANE, bounds=(0, 10)), PLANE),
    "powers of Manhattan rows": (lambda: _race(hs.ManhattanKernel(2, 1.0, power=3), PLANE), PLANE),
    "combined rows": (
        lambda: _race(0.7 * hs.EuclideanKernel(2, 1.0) + 0.3 * hs.ManhattanKernel(2, 3.0), PLANE),
        PLANE,
    ),
    "features": (lambda: _features(hs.GaussianKernel(3, 2.0), SPACE), SPACE),
    "Laplacian features": (lambda: _features(hs.LaplacianKernel(2, 2.0), PLANE, bounds=(0, 10)), PLANE),
    "Matérn features": (lambda: _features(hs.MaternKernel(2, 2.0), PLANE, orthogonal=False), PLANE),
    "features of a product": (lambda: _features(_halves(), PLANE), PLANE),
    "sharpened features": (
        lambda: _features(hs.GaussianKernel(3, 2.0), SPACE).with_public_points(SPACE[:7]),
        SPACE,
    ),
    "features sharpened by points found in them": (lambda: _sharpened(), SPACE),
    "random features": (lambda: _features(hs.GaussianKernel(3, 2.0), SPACE, sobol=False), SPACE),
    "random Laplacian features": (lambda: _features(hs.LaplacianKernel(2, 2.0), PLANE, sobol=False), PLANE),
    "even Matérn features": (lambda: _features(hs.MaternKernel(2, 2.0), PLANE, groups=2), PLANE),
    "even features with units": (lambda: _features(_units(hs.MaternKernel(2, 0.2, 2.5)), PLANE), PLANE),
    "even features of a combination": (
        lambda: _features(0.3 * hs.GaussianKernel(2, 2.0) + 0.7 * hs.MaternKernel(2, 1.0, 0.5), PLANE),
        PLANE,
    ),
    "random features of a product": (lambda: _features(_halves(), PLANE, sobol=False), PLANE),
    "sums of vectors": (
        lambda: _released(hs.methods.monomials(hs.kernels.DotProductKernel(dim=3)).add(BALL)),
        BALL,
    ),
    "sums of products": (
        lambda: _released(hs.methods.monomials(hs.kernels.PolynomialKernel(dim=3)).add(BALL)),
        BALL,
    ),
    "a graph": (lambda: _released(_graph()), [[1, 2, 3], [], [5]]),
}
SINGLE = {name for name in FURTHER if "features" in name}
"""Sums in single precision, whose order depends on the machine."""


def _bytes(released: Any) -> str:
    stream = io.BytesIO()
    released.save(stream)
    return b64encode(stream.getvalue()).decode()


def _queries(data: Any) -> list[Any]:
    return list(np.asarray(data)[:4].tolist() if isinstance(data, np.ndarray) else data)


@cache
def _further() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The functions, and what the reader says of each, in one process."""
    made = {name: make() for name, (make, _) in FURTHER.items()}
    requests = [
        {"base64": _bytes(made[name]), "queries": _queries(FURTHER[name][1]), "of": of}
        for name in made
        for of in ("mean", "sum")
    ]
    found = iter(answered(requests))
    return made, {name: {"mean": next(found), "sum": next(found)} for name in made}


def _close(found: list[Any], expected: Any, relative: float = CLOSE, absolute: float = 1e-300) -> None:
    numbers = [math.nan if each == "NaN" else float(each) for each in found]
    np.testing.assert_allclose(numbers, np.asarray(expected, float), rtol=relative, atol=absolute)


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, Any]]:
    records = {name: data for name, (_, data) in tables.KERNELS.items()}
    names = sorted(json.loads((tables.FOLDER / "expected.json").read_text()))
    requests = []
    for name in names:
        queries = records.get(name.split("-")[0], tables.POINTS)[:3]
        requests += [
            {"path": str(tables.FOLDER / name), "queries": queries, "of": of} for of in ("mean", "sum")
        ]
    found = iter(answered(requests))
    return {name: {"mean": next(found), "sum": next(found)} for name in names}


@pytest.mark.parametrize("name", sorted(json.loads((tables.FOLDER / "expected.json").read_text())))
def test_golden_tables(golden: dict[str, dict[str, Any]], name: str) -> None:
    expected = json.loads((tables.FOLDER / "expected.json").read_text())[name]
    found = golden[name]
    if name in UNANSWERED:
        assert found["mean"]["kind"] == "unsupported"
        assert found["mean"]["refused"].endswith("read the file with Hushsum for Python.")
        return
    assert found["mean"]["count"] == expected["count"]
    exact = {**expected["claim"]}
    assert found["mean"]["claim"]["exact"] == {each: exact[each] for each in ("epsilon", "delta", "rho")}
    _close(found["mean"]["answers"]["value"], expected["mean"])
    _close(found["mean"]["answers"]["stderr"], expected["stderr"])
    _close(found["sum"]["answers"]["value"], expected["sum"])


def test_hash_rows_are_read_bit_for_bit(golden: dict[str, dict[str, Any]]) -> None:
    expected = json.loads((tables.FOLDER / "expected.json").read_text())
    for name in (f"{kernel}-epsilon.hush" for kernel in tables.KERNELS):
        assert golden[name]["sum"]["answers"]["value"] == expected[name]["sum"], name


def test_golden_points_and_curves() -> None:
    expected = json.loads((points.FOLDER / "expected.json").read_text())
    for name, about in expected.items():
        dim = 2 if name == "histogram" else 1
        queries = [row[:dim] for row in points.QUERIES]
        (found,) = answered([{"path": str(points.FOLDER / f"{name}.hush"), "queries": queries}])
        _close(found["answers"]["value"], about["mean"])
        if name != "kme":
            # The errors of points that were fitted to noisy functions need an eigenvalue decomposition.
            _close(found["answers"]["stderr"], [math.nan if e is None else e for e in about["stderr"]])


@pytest.mark.parametrize("name", FURTHER)
def test_further_kinds(name: str) -> None:
    made, found = _further()
    assert "answers" in found[name]["mean"], found[name]["mean"]
    for of in ("mean", "sum"):
        expected = made[name].query(_queries(FURTHER[name][1]), of=of)
        for number in NUMBERS:
            spread = of == "sum" and number in ("stderr", "bound")
            numbers = getattr(expected, number)
            # A sum in single precision errs by a part of its terms, whatever is left of them.
            rounded = 1e-6 * float(np.abs(expected.value).max()) if name in SINGLE and not spread else 1e-300
            _close(found[name][of]["answers"][number], numbers, 4e-12, rounded)


@pytest.mark.parametrize(
    "claimed", [{"epsilon": 1.0}, {"rho": 0.5}, {"epsilon": 1.0, "delta": 1e-6}], ids=str
)
@pytest.mark.parametrize("per_unit", [None, 3])
def test_features_of_a_box_have_less_noise_under_replace(
    claimed: dict[str, Any], per_unit: int | None
) -> None:
    tally = hs.fourier_features(
        hs.GaussianKernel(1, 1.0), features=50, bounds=(0, 10), seed=1, max_per_unit=per_unit
    )
    units = None if per_unit is None else [str(place) for place in range(len(LINE))]
    function = tally.add(LINE, units=units).release(**claimed, relation="replace")
    (found,) = answered([{"base64": _bytes(function), "queries": [[5.0]]}])
    assert found["answers"]["value"] == pytest.approx(function([[5.0]]).tolist(), rel=1e-5)


def test_the_claim_has_the_same_words() -> None:
    claims: list[dict[str, Any]] = [
        {"epsilon": 0.1},
        {"epsilon": 3.0, "delta": 1e-6},
        {"rho": 0.25, "relation": "replace"},
        {"epsilon": 1 / 3, "relation": "replace"},
    ]
    grid = hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 10)).add(LINE)
    made: list[Any] = [grid.release(**each) for each in claims]
    made.append(hs.releases.combine(made[0], [[float(place)] for place in range(10)]))
    for function, found in zip(made, answered([{"base64": _bytes(each)} for each in made]), strict=True):
        assert found["claim"]["sentence"] == function.claim.sentence()


def test_a_picture_is_its_queries() -> None:
    function = _grid(hs.EuclideanKernel(3, 2.0), SPACE)
    steps = [[1.0, 4.0, 7.5], [2.0, 6.0]]
    for axes in ([0, 2], [2, 0]):
        points = []
        for second in steps[1]:
            for first in steps[0]:
                point = [5.0, 5.0, 5.0]
                point[axes[0]], point[axes[1]] = first, second
                points.append(point)
        picture = {"axes": axes, "steps": steps, "fixed": [5.0, 5.0, 5.0]}
        (found,) = answered([{"base64": _bytes(function), "queries": points, "picture": picture}])
        for number in ("value", "stderr", "lower", "upper"):
            _close(found["picture"][number], [float(each) for each in found["answers"][number]])


def test_parts_of_models_are_functions() -> None:
    model = hs.PrivateDensity(epsilon=1.0, bounds=(0, 10), bandwidth=1.0).fit(LINE)
    stream = io.BytesIO()
    model.save(stream)
    (found,) = answered([{"base64": b64encode(stream.getvalue()).decode()}])
    assert found["kind"] == "model"
    assert found["parts"]


def test_whatever_is_answered_completely_is_answered_as_in_python() -> None:
    """The service's page answers such functions itself, and sends the queries of all others."""
    made: dict[str, Any] = {name: make() for name, make in RELEASES.items()}
    queries = {name: [[0.3] * each.dim, [0.55] * each.dim] for name, each in made.items()}
    requests = [
        {"base64": _bytes(each), "queries": queries[name], "of": of}
        for name, each in made.items()
        for of in ("mean", "sum")
    ]
    found = iter(answered(requests))
    complete = set()
    for name, each in made.items():
        for of in ("mean", "sum"):
            answer = next(found)
            if not answer.get("complete"):
                continue
            complete.add(name)
            expected = each.query(queries[name], of=of)
            for number in ("value", "stderr", "lower", "upper"):
                rounding = 1e-6 if name == "public points" else 4e-12
                _close(answer["answers"][number], getattr(expected, number), rounding)
    assert {"race", "grid", "stream", "combined", "bins", "histogram", "pfda", "public points"} <= complete
    assert not {"kme", "landmarks"} & complete, "their errors are not computed by the reader"


def test_a_function_that_is_combined_with_public_points() -> None:
    function: Any = RELEASES["combined"]()
    queries = [[0.4], [0.55], [0.9]]
    request = {"base64": _bytes(function), "queries": queries}
    for of, found in zip(("mean", "sum"), answered([request, {**request, "of": "sum"}]), strict=True):
        expected = function.query(queries, of=of)
        for number in NUMBERS:
            _close(found["answers"][number], getattr(expected, number))


def test_python_and_the_reader_agree_on_what_a_page_answers() -> None:
    text = (reader_folder() / "released_function.js").read_text(encoding="utf-8")
    listed = re.search(r"^const BASES = \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    names = re.findall(r"^  \"?([a-z-]+)\"?:", listed[1], re.MULTILINE)
    assert sorted(names) == [each.name for each in all_bases() if each.in_pages]


def test_files_that_are_confidential_or_damaged(tmp_path: Path) -> None:
    whole = (tables.FOLDER / "euclidean-epsilon.hush").read_bytes()
    damaged = bytearray(whole)
    damaged[-40] ^= 1
    later = bytearray(whole)
    later[8] = 2
    requests = [
        {"path": str(tables.FOLDER / "euclidean.tally")},
        {"base64": b64encode(bytes(damaged)).decode()},
        {"base64": b64encode(whole[:100]).decode()},
        {"base64": b64encode(bytes(later)).decode()},
        {"base64": ""},
    ]
    found = [each["refused"] for each in answered(requests)]
    assert "confidential tally" in found[0]
    assert "damaged" in found[1]
    assert "damaged" in found[2]
    assert "version 2" in found[3]
    assert "not a released function" in found[4]
