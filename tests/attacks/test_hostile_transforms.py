"""Records, public rows and files that try to make one record's image depend on another, or on its place.

A claim of a release whose records are transformed or hashed asymmetrically holds only if every record's
vector is a function of that record alone, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import DataRefused, FileRefused, HushsumError, UsageError
from hushsum.kernels import kernel_as_json, kernel_from_json
from hushsum.privacy import Relation
from hushsum.records import Transform

RNG = np.random.default_rng(3)
COLUMNS = 7
TINY, HUGE = np.float32(1e-45), np.finfo(np.float32).max


def hostile_rows() -> NDArray[np.float32]:
    rows = RNG.normal(size=(203, COLUMNS)).astype(np.float32)
    rows[0] = 0.0
    rows[1] = -0.0
    rows[2] = TINY
    rows[3] = HUGE
    rows[4] = np.array([HUGE, TINY, -HUGE, -TINY, 1.0, -1.0, 0.0], np.float32)
    rows[5] = np.finfo(np.float32).tiny
    rows[6] = np.eye(COLUMNS)[0]  # on the sphere
    rows[7] = rows[6] * (1 + np.finfo(np.float32).eps)
    rows[8] = rows[6] * 2.0**-126
    rows[9:12] = rows[12:15] * np.float32(1e30)
    return rows


PUBLIC = RNG.normal(size=(400, COLUMNS))
SCALED = PUBLIC * 10.0 ** np.linspace(-15, 15, COLUMNS)
ALIKE = PUBLIC * 1e-4 + 1.0
LABELS = (PUBLIC[:, 0] > 0).astype(int)

TRANSFORMS: dict[str, Callable[[], Transform]] = {
    "whitening": lambda: Transform.whitening(PUBLIC, input_radius=3.0),
    "two directions": lambda: Transform.whitening(PUBLIC, input_radius=3.0, directions=2),
    "principal": lambda: Transform.principal(PUBLIC, input_radius=1e-9),
    "centring": lambda: Transform.centring(PUBLIC, input_radius=1e15),
    "condition 1e30": lambda: Transform.whitening(SCALED, input_radius=1e15),
    "nearly equal rows": lambda: Transform.whitening(ALIKE, input_radius=10.0),
    "discriminant": lambda: Transform.discriminant(PUBLIC, LABELS, input_radius=2.0),
}


@contextmanager
def threads(number: int) -> Iterator[None]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(number):
        yield


def batches(rows: NDArray[Any]) -> Iterator[tuple[NDArray[np.int64], Any]]:
    """Some rows by their numbers, in containers that libraries treat differently."""
    every = np.arange(len(rows))
    yield every, np.asfortranarray(rows)
    yield every, rows.astype(np.float64)
    for size in (1, 2, 3, 5, 8, 16, 17, 64, 129):
        chosen = RNG.choice(every, size, replace=False)
        yield chosen, rows[chosen]
    shuffled = RNG.permutation(every)
    yield shuffled, rows[shuffled]
    yield every[::2], rows[::2]
    yield every, np.hstack([rows, rows])[:, :COLUMNS]
    # One record more, beside which the others must stay what they were.
    yield every[:-1], rows[:-1]


@pytest.mark.parametrize("make", TRANSFORMS.values(), ids=TRANSFORMS)
def test_images_do_not_depend_on_other_records(make: Callable[[], Transform]) -> None:
    transform, rows = make(), hostile_rows()
    alone = np.vstack([transform.apply(rows[[i]]) for i in range(len(rows))])
    assert np.isfinite(alone).all()
    for number in (1, 2):
        with threads(number):
            for chosen, batch in batches(rows):
                assert transform.apply(batch).tobytes() == alone[chosen].tobytes()


@pytest.mark.parametrize("query_radius", [None, 2.0])
@pytest.mark.parametrize("radius", [1.0, 1e-12, 1e12])
def test_asymmetric_hashes_do_not_depend_on_other_records(radius: float, query_radius: float | None) -> None:
    kernel = hs.kernels.AsymmetricAngularKernel(dim=COLUMNS, bits=3, radius=radius, query_radius=query_radius)
    tally = hs.race(kernel, rows=40)
    rows = hostile_rows()
    vectors = kernel.prepare(rows).arrays[0]
    assert np.isfinite(vectors).all()
    assert np.abs((vectors.astype(np.float64) ** 2).sum(axis=1) - 1.0).max() < 1e-5
    cells = tally.basis.cells(tally.basis.prepare(rows))  # type: ignore[attr-defined]
    for chosen, batch in batches(rows):
        assert kernel.prepare(batch).arrays[0].tobytes() == vectors[chosen].tobytes()
        prepared = tally.basis.prepare(batch)
        assert np.array_equal(tally.basis.cells(prepared), cells[chosen])  # type: ignore[attr-defined]
    for number in (1, 2, 4):
        one, other = hs.race(kernel, rows=40), hs.race(kernel, rows=40)
        one.add(rows, threads=number)
        for each in rows:
            other.add(each[None])
        f, g = (each.release(epsilon=1.0, rows=40, insecure_noise_seed=1) for each in (one, other))
        assert np.array_equal(f.table, g.table)  # type: ignore[attr-defined]


def test_a_fitted_signed_kernel_counts_each_record_alone() -> None:
    fit = hs.kernels.fit_kernel(
        lambda r: np.exp(-(r**2) / 2),
        distances=np.linspace(0, 3, 20),
        dim=COLUMNS,
        most=5,
        method="least-squares",
    )
    rows = hostile_rows()[12:60]
    one, other = (hs.race(fit.kernel, rows=60, width=50) for _ in range(2))
    one.add(rows)
    for each in rows[::-1]:
        other.add(each[None])
    assert one.basis.fingerprint == other.basis.fingerprint
    f, g = (each.release(epsilon=1.0, rows=60, insecure_noise_seed=1) for each in (one, other))
    assert np.array_equal(f.table, g.table)  # type: ignore[attr-defined]
    # Rows are divided: whatever the weights are, one record adds 1 in each.
    assert one.basis.sensitivity(Relation.ADD_REMOVE).l1 == 60
    # Another weight is another function of the same counts, and another fingerprint or kernel.
    changed = kernel_as_json(fit.kernel)
    changed["parameters"]["components"][0]["weight"] *= 1.5
    assert kernel_from_json(changed) != fit.kernel


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_without_a_value(wrong: float) -> None:
    rows = hostile_rows().astype(np.float64)
    rows[50, 2] = wrong
    kernel = hs.kernels.AsymmetricAngularKernel(dim=COLUMNS)
    for use in (
        TRANSFORMS["whitening"]().apply,
        kernel.prepare,
        lambda each: Transform.whitening(each, input_radius=1.0),
        lambda each: Transform.discriminant(each, np.arange(203) % 2, input_radius=1.0),
    ):
        with pytest.raises(DataRefused) as refused:
            use(rows)
        assert "203" not in str(refused.value)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf, 1e16, 5e-324])
def test_radii_beyond_sense_are_refused(radius: float) -> None:
    with pytest.raises(UsageError):
        Transform.whitening(PUBLIC, input_radius=radius)
    if not 0 < radius < np.inf:
        with pytest.raises(HushsumError):
            hs.kernels.AsymmetricAngularKernel(dim=2, radius=radius)
        with pytest.raises(HushsumError):
            hs.kernels.AsymmetricAngularKernel(dim=2, query_radius=radius)


@pytest.mark.parametrize(
    "public",
    [np.ones((400, 3)), np.zeros((400, 3)), np.full((400, 3), HUGE), PUBLIC * 1e-30, PUBLIC[:9], PUBLIC[0]],
    ids=["ones", "zeros", "huge", "tiny", "few", "one"],
)
def test_public_rows_without_directions_are_refused_or_harmless(public: Any) -> None:
    for learn in (Transform.whitening, Transform.principal, Transform.centring):
        try:
            transform = learn(public, input_radius=1.0)
        except (DataRefused, UsageError, FileRefused):
            continue
        assert np.isfinite(transform.apply(np.ones((2, transform.columns)))).all()


def test_arrays_of_a_file_are_checked() -> None:
    good = TRANSFORMS["whitening"]()
    assert Transform.from_arrays(good.arrays()).digest == good.digest
    least = np.iinfo(np.int64).min

    def changed(name: str, change: Callable[[NDArray[Any]], Any]) -> dict[str, Any]:
        return {**good.arrays(), name: change(np.array(good.arrays()[name]))}

    def with_one(value: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
        def change(array: NDArray[Any]) -> NDArray[Any]:
            array.flat[0] = value
            return array

        return change

    hostile = [
        # The size of the least integer is negative, and products with it are not exact.
        changed("transform matrix", with_one(least)),
        changed("transform matrix", with_one(2**20 + 1)),
        changed("transform matrix", lambda each: each.astype(np.float64) / 2),
        changed("transform matrix", lambda each: each[:0]),
        changed("transform matrix", lambda each: each[:, :0]),
        changed("transform matrix", lambda each: each[0]),
        changed("transform matrix", lambda each: np.tile(each, (1, 1000))),
        changed("transform offset", with_one(least)),
        changed("transform offset", with_one(2**52)),
        changed("transform offset", lambda each: each[:-1]),
        changed("transform scales", with_one(np.nan)),
        changed("transform scales", with_one(-1.0)),
        changed("transform scales", with_one(0.0)),
        changed("transform scales", with_one(np.inf)),
        changed("transform scales", lambda each: each[:2]),
        changed("transform variances", with_one(-1.0)),
        changed("transform variances", with_one(np.nan)),
        changed("transform variances", lambda each: each[:-1]),
    ]
    for arrays in hostile:
        with pytest.raises((FileRefused, ValueError)):
            Transform.from_arrays(arrays)


def test_a_transformation_is_whole_numbers_that_stay_what_its_digest_says() -> None:
    good = TRANSFORMS["whitening"]()
    for array in (good.matrix, good.offset, good.variances):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    halves = good.matrix / 2.0
    with pytest.raises(FileRefused):
        Transform(halves, good.offset, good.scale, good.input_radius, good.radius, good.variances)  # type: ignore[arg-type]
    # What the caller still holds is another array.
    matrix = np.array(good.matrix)
    made = Transform(matrix, good.offset, good.scale, good.input_radius, good.radius, good.variances)
    matrix[0, 0] += 1
    assert made.digest == good.digest
    assert not np.array_equal(made.matrix, matrix)


class Crooked:
    """A step that looks linear at the unit vectors and at zero, and nowhere else."""

    def __init__(self, wrong: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        self.wrong = wrong

    def transform(self, rows: NDArray[Any]) -> NDArray[Any]:
        return self.wrong(np.asarray(rows, np.float64))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rows: np.sort(rows, axis=0),  # mixes records
        lambda rows: rows - rows.mean(axis=0),  # depends on the batch
        lambda rows: rows / max(np.linalg.norm(rows), 1e-9),
        lambda rows: np.abs(rows),
        lambda rows: rows * np.nan,
        lambda rows: rows * 1e300 * 1e300,
        lambda rows: rows.round(),
        lambda rows: rows.ravel(),
        lambda rows: np.random.default_rng().normal(size=rows.shape),
    ],
)
def test_steps_that_are_not_linear_are_refused(wrong: Any) -> None:
    with np.errstate(all="ignore"), pytest.raises(UsageError, match="must be linear"):
        Transform.of_steps(Crooked(wrong), PUBLIC, input_radius=1.0)


def test_a_distance_of_a_thousand_pairs_does_not_fill_the_memory() -> None:
    gaussian = lambda r: np.exp(-(r**2) / 2)  # noqa: E731
    some = [hs.EuclideanKernel(dim=1, bandwidth=b) for b in (1.0, 2.0)]
    for how in (
        {"distances": np.linspace(0, 1, 20_001)},
        {"distances": np.linspace(0, 1, 9), "components": some * 501},
        {"distances": [0.0, 1e308]},
        {"distances": [0.0, 5e-324]},
        {"distances": ["a", "b"]},
        {"distances": np.linspace(0, 1, 9), "most_weight": 1e300},
        {"distances": np.linspace(0, 1, 9), "seconds": np.nan},
        {"distances": np.linspace(0, 1, 9), "seconds": -1},
        {"distances": np.linspace(0, 1, 9), "components": [1, 2]},
    ):
        with pytest.raises(UsageError):
            hs.kernels.fit_kernel(gaussian, **{"components": some, **how})  # type: ignore[arg-type]
    for target in (lambda r: r + 1j, lambda r: np.full_like(r, 1e308), lambda r: "x", [np.nan] * 9, None):
        with pytest.raises(UsageError, match="similarity"):
            hs.kernels.fit_kernel(target, distances=np.linspace(0, 1, 9), components=some)  # type: ignore[arg-type]
