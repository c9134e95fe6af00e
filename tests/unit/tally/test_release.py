"""Releasing: which noise is drawn, how many rows are published, what is written beside them."""

from __future__ import annotations

import io
import json
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import SecretRefused
from hushsum.privacy import GAUSSIAN, LAPLACE, NONE, IntegerNoise
from hushsum.privacy.accounting import discrete_gaussian_delta
from hushsum.privacy.noise import NoiseSource
from hushsum.releases import TableFunction, load_function
from hushsum.tables import rows_for_laplace
from hushsum.tally import Tally
from tests.exact_tallies import exact_count, exact_table

RECORDS = 5000


@pytest.fixture(scope="module")
def tally() -> Tally:
    points = np.random.default_rng(0).normal(size=(RECORDS, 2))
    return hs.race(hs.EuclideanKernel(2, 1.0), rows=100, width=50, seed=2).add(points)


def released(tally: Tally, **options: Any) -> TableFunction:
    f = tally.release(**{"insecure_noise_seed": 1, **options})
    assert isinstance(f, TableFunction)
    return f


def same(f: TableFunction, g: TableFunction) -> bool:
    return bool(np.array_equal(f.table, g.table)) and f.noisy_count == g.noisy_count


@pytest.mark.parametrize(
    "promise", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}], ids=str
)
def test_seeded_releases_repeat_and_are_marked(tally: Tally, promise: dict[str, float]) -> None:
    f, g = released(tally, **promise), released(tally, **promise)
    assert same(f, g)
    assert not same(f, released(tally, insecure_noise_seed=2, **promise))
    assert f.claim.secure is False
    assert "secure=False" in repr(f.claim)
    assert f.claim.sentence().startswith("No protection")
    back = io.BytesIO()
    f.save(back)
    back.seek(0)
    assert load_function(back).claim.secure is False


@pytest.mark.parametrize("promise", [{"epsilon": 1.0}, {"rho": 0.1}], ids=str)
def test_secure_releases_differ_every_time(tally: Tally, promise: dict[str, float]) -> None:
    f, g = (released(tally, insecure_noise_seed=None, rows=20, **promise) for _ in range(2))
    assert f.claim.secure is g.claim.secure is True
    assert np.count_nonzero(f.table != g.table) > f.table.size // 2
    assert "No protection" not in f.claim.sentence()


def test_threads_do_not_change_the_noise(tally: Tally) -> None:
    assert same(released(tally, epsilon=1.0, threads=1), released(tally, epsilon=1.0, threads=3))


def test_releasing_leaves_the_tally_as_it_was(tally: Tally) -> None:
    before = exact_table(tally).copy()
    released(tally, epsilon=1.0)
    released(tally, rho=0.5)
    np.testing.assert_array_equal(exact_table(tally), before)
    assert exact_count(tally) == RECORDS


def test_the_key_is_wiped_when_the_release_is_over(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[NoiseSource] = []
    fresh = NoiseSource.fresh

    def remember() -> NoiseSource:
        made.append(fresh())
        return made[-1]

    monkeypatch.setattr(NoiseSource, "fresh", remember)
    released(tally, epsilon=1.0, insecure_noise_seed=None)
    assert len(made) == 1
    with pytest.raises(SecretRefused, match="closed"):
        made[0].stream()


class Spy:
    """Records every draw of noise: which law, how many."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.draws: list[tuple[IntegerNoise, int]] = []
        self.values: list[NDArray[np.int64]] = []
        real = IntegerNoise.draw

        def draw(
            noise: IntegerNoise, size: int, source: NoiseSource, *, threads: int = 1
        ) -> NDArray[np.int64]:
            self.draws.append((noise, size))
            self.values.append(real(noise, size, source, threads=threads))
            return self.values[-1].copy()

        monkeypatch.setattr(IntegerNoise, "draw", draw)


@pytest.mark.parametrize(
    ("options", "count", "table"),
    [
        ({"epsilon": 1.0}, (LAPLACE, Fraction(50)), (LAPLACE, Fraction(100 * 50, 49))),
        ({"epsilon": 0.1}, (LAPLACE, Fraction(500)), (LAPLACE, Fraction(100 * 500, 49))),
        ({"epsilon": 1.0, "count_share": 0.1}, (LAPLACE, Fraction(10)), (LAPLACE, Fraction(1000, 9))),
        ({"epsilon": 1.0, "relation": "replace"}, (NONE, Fraction(0)), (LAPLACE, Fraction(200))),
        ({"rho": 0.5}, (GAUSSIAN, Fraction(50)), (GAUSSIAN, Fraction(5000, 49))),
        ({"rho": 0.5, "relation": "replace"}, (NONE, Fraction(0)), (GAUSSIAN, Fraction(200))),
    ],
    ids=str,
)
def test_noise_is_drawn_with_exactly_the_calibrated_parameters(
    tally: Tally,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    count: tuple[str, Fraction],
    table: tuple[str, Fraction],
) -> None:
    """Worked by hand: scale Δ1/ε and variance Δ2²/2ρ, of the table's and the count's share."""
    spy = Spy(monkeypatch)
    f = released(tally, rows=100, **options)
    assert spy.draws == [(IntegerNoise(*count), 1), (IntegerNoise(*table), 100 * 50)]
    assert (f.count_noise, f.noise) == (IntegerNoise(*count), IntegerNoise(*table))
    exact = exact_table(tally)
    np.testing.assert_array_equal(f.table, exact + spy.values[1].reshape(100, 50))
    assert f.noisy_count == RECORDS + int(spy.values[0][0])


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_gaussian_noise_for_epsilon_and_delta_keeps_them(
    tally: Tally, monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    spy = Spy(monkeypatch)
    released(tally, epsilon=1.0, delta=1e-6, relation=relation)
    (count, _), (table, size) = spy.draws
    assert size == 100 * 50
    assert table.mechanism == GAUSSIAN
    private = relation == "add/remove"
    assert count.mechanism == (GAUSSIAN if private else NONE)

    def delta(scale: Fraction) -> float:
        return discrete_gaussian_delta(
            1.0,
            cells=100 if private else 200,
            variance=table.parameter * scale,
            count_variance=count.parameter * scale if private else None,
        )

    assert delta(Fraction(1)) <= 1e-6
    assert delta(Fraction(999, 1000)) > 1e-6, "more noise was drawn than the claim needs"


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_auto_rows_follow_the_noisy_count(tally: Tally, epsilon: float, seed: int) -> None:
    f = released(tally, epsilon=epsilon, insecure_noise_seed=seed)
    assert f.noisy_count != RECORDS
    assert f.rows == rows_for_laplace(max(f.noisy_count, 1), epsilon * 0.98, 3e-3, 100)


def test_auto_rows_weigh_the_noise_of_the_relation(tally: Tally) -> None:
    f = released(tally, epsilon=0.5, relation="replace")
    assert f.rows == rows_for_laplace(RECORDS, 0.5 / 2, 3e-3, 100)
    assert f.rows < released(tally, epsilon=0.5).rows


def test_auto_rows_do_not_look_at_the_exact_count(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[float] = []

    def spy(records: float, epsilon: float, variance: float, capacity: int) -> int:
        requested.append(records)
        return 7

    monkeypatch.setattr("hushsum.tables._hash_rows.rows_for_laplace", spy)
    f = released(tally, epsilon=0.1)
    assert requested == [f.noisy_count]
    assert f.rows == 7
    assert f.table.shape == (7, 50)
    assert f.noise.parameter == Fraction(7 * 500, 49), "noise of the published rows alone"


def test_a_very_negative_noisy_count_publishes_one_row() -> None:
    empty = hs.race(hs.EuclideanKernel(2, 1.0), rows=10, width=4)
    rows = [released(empty, epsilon=0.01, insecure_noise_seed=seed).rows for seed in range(20)]
    counts = [released(empty, epsilon=0.01, insecure_noise_seed=seed).noisy_count for seed in range(20)]
    assert min(counts) < 0
    assert all(r >= 1 for r in rows)


@pytest.mark.parametrize("promise", [{"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}], ids=str)
def test_auto_publishes_every_row_where_noise_does_not_grow_with_them(
    tally: Tally, promise: dict[str, float]
) -> None:
    assert released(tally, **promise).rows == 100


def test_published_rows_are_the_first_ones(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    f = released(tally, epsilon=1.0, rows=9)
    np.testing.assert_array_equal(f.table, exact_table(tally)[:9] + spy.values[1].reshape(9, 50))
    assert f.basis.shape == (9, 50)


def test_replace_tells_the_exact_count_and_doubles_the_noise(tally: Tally) -> None:
    f = released(tally, epsilon=1.0, relation="replace", rows=100)
    assert (f.count, f.count_stderr) == (RECORDS, 0.0)
    assert f.claim.relation.value == "replace"
    plain = released(tally, epsilon=1.0, rows=100)
    assert f.noise.parameter == 2 * plain.noise.parameter * Fraction(49, 50)
    assert released(tally, rho=0.5, relation="replace").noise.parameter == 2 * 100


def test_under_add_remove_no_exact_count_is_written(tally: Tally) -> None:
    stream = io.BytesIO()
    f = released(tally, epsilon=1.0, rows=5)
    assert f.noisy_count != RECORDS
    f.save(stream)
    data = stream.getvalue()
    header = data[24 : 24 + struct.unpack_from("<I", data, 12)[0]]
    assert str(RECORDS).encode() not in header
    assert json.loads(header)["count"]["value"] == f.noisy_count


def test_large_tables_keep_64_bits() -> None:
    basis = hs.race(hs.JaccardKernel(), rows=2, width=2).basis
    big = Tally._restore(basis, None, table=np.full((2, 2), 2**40, np.int64), count=2**41, moves=2**41)
    f = released(big, epsilon=1.0, rows=2)
    assert f.table.dtype == np.int64
    assert abs(int(f.table[0, 0]) - 2**40) < 1000
    assert released(hs.race(hs.JaccardKernel(), rows=2, width=2), epsilon=1.0).table.dtype == np.int32
