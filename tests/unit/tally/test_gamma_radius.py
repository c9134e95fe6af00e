"""The Gamma-radius law under pure ε: what it claims, how large it is, and where it is refused."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.auditing import audit_calibration
from hushsum.errors import ClaimError, FileRefused, UsageError
from hushsum.files import FileKind, read_container, write_container
from hushsum.privacy import (
    GAMMA,
    IntegerNoise,
    Sensitivity,
    gamma_noise,
    laplace_noise,
    pure_mechanism,
    root_above,
)
from hushsum.privacy.noise import NoiseSource
from tests.recording_budget import RecordingBudget

KERNEL = hs.GaussianKernel(dim=2, bandwidth=1.0)
RECORDS = np.random.default_rng(1).normal(size=(500, 2))


def released(**options: Any) -> Any:
    tally = hs.fourier_features(KERNEL, features=300).add(RECORDS)
    return tally.release(epsilon=1.0, rows=200, mechanism="gamma radius", **options)


def test_the_claim_says_exact_integers() -> None:
    f = released()
    assert (f.claim.epsilon, f.claim.delta) == (1.0, 0)
    assert (str(f.claim.mechanism), f.claim.arithmetic) == ("gamma radius", "exact integers")


def test_the_default_is_the_law_of_less_variance() -> None:
    features = hs.fourier_features(KERNEL, features=300).add(RECORDS)
    default, laplace = (
        features.release(epsilon=1.0),
        features.release(epsilon=1.0, mechanism="discrete laplace"),
    )
    assert (str(default.claim.mechanism), str(laplace.claim.mechanism)) == (
        "gamma radius",
        "discrete laplace",
    )
    rows = hs.race(hs.AngularKernel(dim=2, bits=4), rows=30).add(RECORDS)
    assert str(rows.release(epsilon=1.0).claim.mechanism) == "discrete laplace"
    assert str(features.release(rho=0.1).claim.mechanism) == "discrete gaussian"


def test_more_rows_suit_less_noise() -> None:
    tally = hs.fourier_features(KERNEL, features=2000, sobol=False).add(RECORDS)
    default: Any = tally.release(epsilon=1.0, insecure_noise_seed=1)
    laplace: Any = tally.release(epsilon=1.0, mechanism="discrete laplace", insecure_noise_seed=1)
    assert default.rows == pytest.approx(2**0.5 * laplace.rows, rel=0.02)


def test_the_variance_is_half_of_laplace_noise() -> None:
    pairs = 1000
    gamma = gamma_noise(pairs, 2 * pairs, Fraction(1))
    laplace = laplace_noise(round(2**0.5 * pairs), Fraction(1))
    assert gamma.variance == pytest.approx(0.5 * laplace.variance, rel=0.01)


@pytest.mark.parametrize("cells", [1, 2, 50])
def test_draws_have_that_variance_and_their_length_the_gamma_law(cells: int) -> None:
    # 4000 vectors: both moments within 6 standard errors, a seed is fixed.
    noise = IntegerNoise(GAMMA, Fraction(1000), cells)
    with NoiseSource.insecure(3) as source:
        drawn = np.array([noise.draw(cells, source) for _ in range(4000)], np.float64)
    lengths = np.linalg.norm(drawn, axis=1)
    assert lengths.mean() == pytest.approx(1000 * cells, abs=6 * 1000 * (cells / 4000) ** 0.5 + 1)
    assert (drawn**2).mean() == pytest.approx(noise.variance, rel=6 * (20 / (4000 * cells**0.5)) ** 0.5)


def test_the_whole_table_shares_one_length() -> None:
    with NoiseSource.insecure(1) as source, pytest.raises(ValueError, match="shared"):
        IntegerNoise(GAMMA, Fraction(5), 10).draw(9, source)


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_the_noise_keeps_the_claim_and_less_does_not(relation: str) -> None:
    f = released(relation=relation)
    assert all(row.holds for row in audit_calibration(f))
    moved = f.basis.sensitivity(f.claim.relation)
    spent = root_above(moved.l2_squared) / f.noise.parameter
    assert spent == (1 if relation == "replace" else Fraction(49, 50))
    object.__setattr__(f, "noise", IntegerNoise(GAMMA, f.noise.parameter * Fraction(99, 100), f.noise.cells))
    assert not all(row.holds for row in audit_calibration(f))


def test_files_come_back_and_false_ones_are_refused() -> None:
    f = released()
    stream = io.BytesIO()
    f.save(stream)
    again: Any = hs.load(io.BytesIO(stream.getvalue()))
    np.testing.assert_array_equal(again([[0.0, 0.0]]), f([[0.0, 0.0]]))
    assert again.noise == f.noise
    header, payload = read_container(
        io.BytesIO(stream.getvalue()),
        FileKind.RELEASED,
        lambda header: len(stream.getvalue()) - 24 - 32 - _size(header),
    )
    for change in ({"cells": 7}, {"parameter": "1"}, {"parameter": "-1/1000000000"}, {"parameter": "0"}):
        other = json.loads(json.dumps(header))
        other["noise"] |= change
        false = io.BytesIO()
        write_container(false, FileKind.RELEASED, other, [payload])
        with pytest.raises(FileRefused):
            hs.load(io.BytesIO(false.getvalue()))
    for law in (
        {"mechanism": "none", "parameter": "0"},
        {"mechanism": "discrete gaussian", "parameter": "9"},
    ):
        other = json.loads(json.dumps(header))
        other["count"]["noise"] = law
        false = io.BytesIO()
        write_container(false, FileKind.RELEASED, other, [payload])
        with pytest.raises(FileRefused):
            hs.load(io.BytesIO(false.getvalue()))


def test_some_of_the_rows_are_a_release_of_their_own() -> None:
    """Their noise is a part of a vector of this law, which moves no more than the whole."""
    f = released()
    part = f.first_rows(100)
    stream = io.BytesIO()
    part.save(stream)
    again: Any = hs.load(io.BytesIO(stream.getvalue()))
    assert again.noise == f.noise
    assert again.noise.cells == 2 * again.cells.size
    assert all(row.holds for row in audit_calibration(again))
    np.testing.assert_array_equal(again([[0.0, 0.0]]), part([[0.0, 0.0]]))


def test_the_default_is_laplace_where_rounding_counts_or_no_vector_can_be_drawn() -> None:
    two = Sensitivity(l1=2, l2_squared=2, largest=1)
    assert pure_mechanism(two, 2, Fraction(1, 10)) == "gamma radius"
    assert pure_mechanism(two, 2, Fraction(6)) == "discrete laplace"
    dense = Sensitivity(l1=1 << 43, l2_squared=1 << 78, largest=1 << 34)
    assert pure_mechanism(dense, 500, Fraction(12)) == "gamma radius"
    assert pure_mechanism(dense, 500, Fraction(9)) == "discrete laplace"


def test_less_noise_than_can_be_drawn_is_refused_before_anything_is_spent() -> None:
    budget = RecordingBudget()
    tally = hs.fourier_features(KERNEL, features=300).add(RECORDS)
    with pytest.raises(UsageError, match="scale of noise"):
        tally.release(epsilon=1e30, rows=200, mechanism="gamma radius", budget=budget)
    assert budget.steps == []


def _size(header: dict[str, Any]) -> int:
    return len(json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


def test_other_promises_are_refused() -> None:
    with pytest.raises(ClaimError, match="with or without delta"):
        hs.fourier_features(KERNEL).release(mechanism="gamma radius", rho=0.1)


def test_more_noise_than_can_be_drawn_is_refused_before_anything_is_spent() -> None:
    assert gamma_noise((1 << 78) - 1, 3, Fraction(1)).variance <= 2.0**80
    with pytest.raises(ClaimError, match=r"below 2\*\*40 in a cell, got 2\*\*40.0"):
        gamma_noise(1 << 78, 3, Fraction(1))
    budget = RecordingBudget()
    tally = hs.fourier_features(KERNEL, features=300).add(RECORDS)
    with pytest.raises(ClaimError, match="leave mechanism out"):
        tally.release(epsilon=1e-7, rows=200, mechanism="gamma radius", budget=budget)
    assert budget.steps == []


def test_other_mechanisms_are_refused() -> None:
    with pytest.raises(UsageError, match="mechanism must be 'discrete laplace', 'gamma radius'"):
        hs.fourier_features(KERNEL).release(epsilon=1.0, mechanism="laplace")


def test_a_requested_law_is_planned_for() -> None:
    kernel = hs.GaussianKernel(dim=20, bandwidth=1.0)
    requested: dict[str, Any] = {"records": 100_000, "kernel": kernel, "epsilon": 0.5, "comparison": False}
    laplace = hs.plan(**requested, mechanism="discrete laplace").best
    assert laplace.mechanism == "discrete laplace"
    assert hs.plan(**requested).best.rows > 1.2 * laplace.rows
    few = np.random.default_rng(2).normal(size=(300, 20)) * 0.3
    given: dict[str, Any] = {"kernel": kernel, "epsilon": 0.5, "records": 300}
    rows = hs.plan(**given, mechanism="discrete laplace").best.rows
    f: Any = hs.release(few, **given, mechanism="discrete laplace")
    assert (f.rows, str(f.claim.mechanism)) == (rows, "discrete laplace")


def test_plans_take_it_but_not_for_shares_of_noise() -> None:
    kernel = hs.GaussianKernel(dim=20, bandwidth=1.0)
    requested: dict[str, Any] = {"records": 100_000, "kernel": kernel, "epsilon": 0.5, "comparison": False}
    own, shares = hs.plan(**requested), hs.plan(**requested, trust="federated", sites=100)
    assert {option.mechanism for option in own} == {"gamma radius"}
    assert {option.mechanism for option in shares} == {"discrete laplace"}
    assert own.best.error < 0.9 * shares.best.error
    few = np.random.default_rng(2).normal(size=(300, 20)) * 0.3
    f = hs.release(few, kernel=kernel, epsilon=0.5, records=300)
    assert str(f.claim.mechanism) == "gamma radius"
