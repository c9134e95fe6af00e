"""Trust models in claims, and which noise a claim rests on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.aggregation_runs import identity, small_tally

import hushsum as hs
from hushsum.auditing import audit_calibration
from hushsum.errors import FileRefused
from hushsum.parties.secure_aggregation import AggregationTerms, released_sum
from hushsum.privacy import (
    GAUSSIAN,
    LAPLACE,
    NO_NOISE,
    SECURE_AGGREGATION,
    SITE_NOISE,
    Calibration,
    Claim,
    IntegerNoise,
    ReleaseRequest,
    Trust,
    protecting_distance,
    protecting_noises,
)
from hushsum.privacy.accounting import sum_distance
from hushsum.releases import NoisyTable, PublicFacts

TRUST = Trust(SECURE_AGGREGATION, 6, dropouts=1, colluding=2)


def aggregated(contributions: int = 6, **promise: float) -> tuple[AggregationTerms, NoisyTable]:
    terms = AggregationTerms.of(
        small_tally(),
        ReleaseRequest(**promise),  # type: ignore[arg-type]
        [identity(i).fingerprint for i in range(6)],
        dropouts=1,
        colluding=2,
    )
    total = np.arange(terms.cells + 1, dtype=np.int64)
    return terms, released_sum(terms, total, contributions)


def test_a_model_is_stored_and_read_back() -> None:
    assert Trust.from_json(TRUST.as_json()) == TRUST
    claim = aggregated(epsilon=1.0)[1].claim
    assert Claim.from_json(claim.as_json()) == claim
    assert claim.in_numbers()["trust"]["colluding"] == 2
    assert "trust=Trust" in repr(claim)
    assert "up to 2 of these sites" in claim._repr_html_()
    assert TRUST.assumptions() == Trust(SITE_NOISE, 3).assumptions() == ()


def test_a_claim_holds_against_every_single_site_unless_it_says_that_it_does_not() -> None:
    sites, request = [identity(i).fingerprint for i in range(3)], ReleaseRequest(epsilon=1.0)
    terms = AggregationTerms.of(small_tally(), request, sites)
    assert terms.colluding == 1
    # The noise of any two of three keeps the claim alone.
    assert terms.shares.table.parts == 2
    assert "against the server and up to 1 of these sites, alone or together." in terms.claim.sentence()
    against_server = AggregationTerms.of(small_tally(), request, sites, colluding=0)
    said = against_server.claim.sentence()
    assert "not against the sites themselves" in said
    assert "This assumes that no site uses its own share of the noise" in said
    assert AggregationTerms.from_bytes(against_server.to_bytes()).claim == against_server.claim


@pytest.mark.parametrize(
    "change",
    [
        {"model": "faith"},
        {"parties": 0},
        {"parties": True},
        {"parties": 1 << 50},
        {"dropouts": -1},
        {"colluding": 5},
        {"colluding": "2"},
        {"further": 1},
        {"model": None},
    ],
)
def test_a_model_that_could_not_have_been_written_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Trust.from_json({**TRUST.as_json(), **change})
    with pytest.raises((ValueError, TypeError)):
        Trust.from_json([])


PROMISES = [{"epsilon": 1.0}, {"rho": 0.02}, {"epsilon": 1.0, "delta": 1e-6}]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("contributions", [5, 6])
def test_files_of_aggregations_are_read_and_audited(
    promise: dict[str, float], contributions: int, tmp_path: Path
) -> None:
    _, function = aggregated(contributions, **promise)
    function.save(tmp_path / "sum.hush")
    again: Any = hs.load(tmp_path / "sum.hush")
    assert (again.claim, again.noise, again.count_noise) == (
        function.claim,
        function.noise,
        function.count_noise,
    )
    report = hs.audit(again)
    assert report.rows[0].verdict == "holds"
    assert again.query([[0.0]]).stderr.shape == (1,)
    assert "At least 5 of 6" in again.claim.sentence()


@pytest.mark.parametrize("sites", [40, 60])
@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_shares_of_many_sites_for_persons_keep_epsilon_and_delta(sites: int, epsilon: float) -> None:
    # Shares are raised to the smallest variance, where the bound by rounded Gaussians has no δ to give.
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=20, width=40, max_per_unit=2)
    request = ReleaseRequest(epsilon=epsilon, delta=1e-5)
    fingerprints = [f"{number:064x}" for number in range(sites)]
    terms = AggregationTerms.of(tally, request, fingerprints)
    assert terms.shares.table.parameter >= 4
    function = released_sum(terms, np.zeros(terms.cells + 1, np.int64), sites)
    assert audit_calibration(function)[0].holds


@pytest.mark.parametrize("promise", PROMISES[:2], ids=str)
def test_files_with_too_few_shares_or_too_little_noise_are_refused(
    promise: dict[str, float], tmp_path: Path
) -> None:
    terms, function = aggregated(6, **promise)
    table, count = terms.shares
    wrong = [
        replace(
            function, noise=IntegerNoise.sum_of([(4, table)]), count_noise=IntegerNoise.sum_of([(4, count)])
        ),
        replace(
            function,
            noise=IntegerNoise.sum_of([(6, replace(table, parameter=table.parameter * Fraction(4, 5)))]),
        ),
        replace(
            function, facts=PublicFacts(replace(function.claim, trust=replace(terms.trust, colluding=3)))
        ),
        replace(function, facts=PublicFacts(replace(function.claim, trust=None))),
        replace(function, facts=PublicFacts(replace(function.claim, trust=Trust(SITE_NOISE, 6)))),
    ]
    for number, each in enumerate(wrong):
        each.save(tmp_path / f"{number}.hush")
        with pytest.raises(FileRefused):
            hs.load(tmp_path / f"{number}.hush")
        assert not hs.audit(each).rows[0].holds


def test_the_noise_of_the_honest_sites_is_what_the_claim_rests_on() -> None:
    _, function = aggregated(6, epsilon=1.0)
    claim = function.claim
    share = IntegerNoise(LAPLACE, Fraction(9), parts=3)
    whole = IntegerNoise(LAPLACE, Fraction(9))
    assert protecting_noises(claim, IntegerNoise.sum_of([(6, share)]), NO_NOISE) == [
        Calibration(whole, NO_NOISE)
    ]
    assert protecting_noises(claim, IntegerNoise.sum_of([(4, share)]), NO_NOISE) == []
    fewer = replace(share, parts=4)
    assert protecting_noises(claim, IntegerNoise.sum_of([(6, fewer)]), NO_NOISE) == []
    # Known to those who collude: a plain law has no shares that are left out.
    assert protecting_noises(claim, whole, NO_NOISE) == []
    gaussian = IntegerNoise(GAUSSIAN, Fraction(10))
    kept = protecting_noises(claim, IntegerNoise.sum_of([(5, gaussian)]), NO_NOISE)
    assert kept == [Calibration(IntegerNoise(GAUSSIAN, Fraction(30)), NO_NOISE)]
    assert 0 < protecting_distance(claim, kept[0]) == sum_distance(3, Fraction(10))


def test_many_tiny_gaussian_shares_are_not_one_discrete_gaussian(tmp_path: Path) -> None:
    # 1000 shares of variance 0.00255 are nearly always 0 together: no discrete Gaussian of variance 2.55.
    _, function = aggregated(6, rho=20.0)
    tiny = IntegerNoise.sum_of([(1000, IntegerNoise(GAUSSIAN, Fraction("0.00255")))])
    trust = Trust(SECURE_AGGREGATION, 1000)
    wrong = replace(
        function, noise=tiny, count_noise=tiny, facts=PublicFacts(replace(function.claim, trust=trust))
    )
    assert protecting_noises(wrong.claim, tiny, tiny) == []
    wrong.save(tmp_path / "tiny.hush")
    with pytest.raises(FileRefused):
        hs.load(tmp_path / "tiny.hush")
    assert not hs.audit(wrong).rows[0].holds
    # One honest share is what it is, of whatever variance.
    alone = replace(wrong.claim, trust=Trust(SECURE_AGGREGATION, 1000, colluding=999))
    assert len(protecting_noises(alone, tiny, tiny)) == 1
    assert protecting_distance(alone, protecting_noises(alone, tiny, tiny)[0]) == 0.0


@pytest.mark.parametrize(("distance", "holds"), [(0.0, True), (1e-4, False)])
def test_the_audit_counts_the_distance_of_the_sum(
    distance: float, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushsum.auditing._audit.protecting_distance", lambda claim, noise: distance)
    for promise in PROMISES[1:]:
        _, function = aggregated(6, **promise)
        assert audit_calibration(function)[0].holds is holds


@pytest.mark.parametrize(
    "data",
    [
        {"mechanism": "sum", "terms": []},
        {"mechanism": "sum", "terms": [{"times": 0, "mechanism": "discrete laplace", "parameter": "3"}]},
        {"mechanism": "sum", "terms": [{"times": 1, "mechanism": "discrete laplace", "parameter": "3"}]},
        {"mechanism": "sum", "terms": [{"times": 2, "mechanism": "sum", "terms": []}]},
        {"mechanism": "sum", "terms": 3},
        {"mechanism": "discrete laplace", "parameter": "3", "parts": 0},
        {"mechanism": "discrete laplace", "parameter": "3", "parts": 1 << 30},
        {"mechanism": "binomial", "parameter": "3"},
        {"mechanism": "binomial", "parameter": "5/2"},
    ],
    ids=str,
)
def test_noise_that_could_not_have_been_written_is_refused(data: dict[str, Any]) -> None:
    from hushsum.errors import HushsumError

    with pytest.raises((ValueError, TypeError, KeyError, HushsumError)):
        IntegerNoise.from_json(data)


def test_sums_of_noise_are_resolved_and_drawn() -> None:
    from hushsum.privacy.noise import NoiseSource

    share = IntegerNoise(LAPLACE, Fraction(9), parts=3)
    nested = IntegerNoise.sum_of([(2, IntegerNoise.sum_of([(2, share)])), (1, NO_NOISE)])
    assert nested.terms == ((4, share), (1, NO_NOISE))
    assert nested.variance == pytest.approx(4 * share.variance)
    assert nested.draw(100, NoiseSource.insecure(1)).shape == (100,)
    assert IntegerNoise.sum_of([(3, NO_NOISE)]) == NO_NOISE
    assert "4 × 1/3 of discrete laplace" in nested.in_words
