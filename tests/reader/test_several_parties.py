"""Releases of several parties in the reader for web pages: read as in Python, and refused as in Python."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.parties.secure_aggregation import AggregationTerms, released_sum
from hushsum.privacy import GAUSSIAN, SECURE_AGGREGATION, IntegerNoise, ReleaseRequest, Trust
from hushsum.releases import NoisyTable, PublicFacts
from hushsum.tally import sums_with_share
from tests.aggregation_runs import identity
from tests.reader.node import answered

QUERIES = [[0.0], [1.5]]
PROMISES: list[dict[str, Any]] = [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}]


def counted() -> hs.Tally:
    points = np.random.default_rng(1).normal(0, 1, (3000, 1))
    return hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=30, width=40).add(points)


def aggregated(promise: dict[str, Any], colluding: int = 1) -> NoisyTable:
    tally = counted()
    sites = [identity(i).fingerprint for i in range(4)]
    terms = AggregationTerms.of(tally, ReleaseRequest(**promise), sites, dropouts=1, colluding=colluding)
    total: Any = sum(sums_with_share(tally, 30, *terms.shares) for _ in sites)
    return released_sum(terms, total, 4)


def merged(promise: dict[str, Any]) -> NoisyTable:
    parts = [counted().release(rows=30, **promise) for _ in range(3)]
    return hs.merge(*parts, disjoint_units=True)


def spelled(function: NoisyTable) -> str:
    stream = io.BytesIO()
    function.save(stream)
    return b64encode(stream.getvalue()).decode()


@pytest.mark.parametrize("make", [aggregated, merged])
def test_claims_and_answers_are_those_of_python(make: Any) -> None:
    promises = [*PROMISES, {"epsilon": 1.0, "delta": 1e-6, "mechanism": "binomial"}]
    functions = [make(each) for each in (promises if make is merged else PROMISES)]
    if make is aggregated:
        functions.append(aggregated(PROMISES[0], colluding=0))
    found = answered([{"base64": spelled(each), "queries": QUERIES} for each in functions])
    for function, got in zip(functions, found, strict=True):
        assert got["claim"]["sentence"] == function.claim.sentence()
        expected = function.query(QUERIES)
        assert got["answers"]["value"] == pytest.approx(expected.value, rel=1e-12)
        assert got["answers"]["stderr"] == pytest.approx(expected.stderr, rel=1e-9)


def test_files_that_python_refuses_are_refused() -> None:
    function = aggregated({"epsilon": 1.0})
    assert function.claim.trust is not None
    wrong = [
        replace(function, facts=PublicFacts(replace(function.claim, trust=None))),
        replace(
            function,
            facts=PublicFacts(replace(function.claim, trust=replace(function.claim.trust, colluding=2))),
        ),
    ]
    gaussian, tiny = aggregated({"rho": 20.0}), IntegerNoise(GAUSSIAN, Fraction("0.00255"))
    many = IntegerNoise.sum_of([(1000, tiny)])
    trust = Trust(SECURE_AGGREGATION, 1000)
    claim = replace(gaussian.claim, trust=trust)
    wrong.append(replace(gaussian, noise=many, count_noise=many, facts=PublicFacts(claim)))
    found = answered([{"base64": spelled(each)} for each in wrong])
    assert all("refused" in each for each in found)
