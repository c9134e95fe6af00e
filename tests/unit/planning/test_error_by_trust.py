"""Predicted errors under different trust."""

from __future__ import annotations

import math
from typing import Any

import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.privacy.accounting import local_epsilon_for

KERNEL = hs.EuclideanKernel(dim=2, bandwidth=5.0)


def planned(**given: Any) -> hs.planning.Plan:
    return hs.plan(records=50_000, kernel=KERNEL, **{"epsilon": 1.0, "rows": 500, "width": 1000, **given})


def test_sites_multiply_the_variance_of_noise() -> None:
    central = planned(tallies_only=True, count_share=0.02).best
    sites = planned(trust="sites", sites=9).best
    federated = planned(trust="federated", sites=9, dropouts=1, colluding=2).best
    assert sites.noise == pytest.approx(3.0 * central.noise)
    assert federated.noise == pytest.approx(math.sqrt(9 / 6) * central.noise)
    assert sites.approximation == federated.approximation == central.approximation
    assert planned(trust="federated", sites=9, colluding=0).best.error == central.error
    # A site knows its own noise: unless it is said otherwise, that of the others must suffice.
    assert planned(trust="federated", sites=9).best.noise == pytest.approx(math.sqrt(9 / 8) * central.noise)
    assert planned(trust="federated", sites=1).best.error == central.error
    assert central.error < federated.error < sites.error


def test_local_noise_falls_as_the_root_of_the_records_whatever_the_rows() -> None:
    few, many = (planned(trust="local", rows=rows).best for rows in (100, 1000))
    assert few.noise == many.noise
    fewer = hs.plan(records=12_500, kernel=KERNEL, epsilon=1.0, rows=100, width=1000, trust="local").best
    assert fewer.noise == pytest.approx(2.0 * few.noise)


def test_shuffled_reports_spend_more_than_the_claim() -> None:
    shuffled = planned(trust="shuffled", delta=1e-7).best
    assert shuffled.settings["local_epsilon"] == local_epsilon_for(1.0, 50_000, 1e-7)
    assert shuffled.noise < planned(trust="local").best.noise


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"trust": "nobody"}, "trust"),
        ({"trust": "sites"}, "sites"),
        ({"sites": 3}, "sites"),
        ({"trust": "federated", "sites": 3, "colluding": 3}, "colluding"),
        ({"trust": "sites", "sites": 3, "colluding": 1}, "colluding"),
        ({"trust": "federated", "sites": 4, "dropouts": 2}, "colluding"),
        ({"trust": "federated", "sites": 3, "dropouts": 1}, "colluding"),
        ({"trust": "shuffled"}, "delta"),
        ({"trust": "local", "delta": 1e-6}, "delta"),
    ],
)
def test_refuses_what_does_not_go_together(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        planned(**given)


def test_reports_need_a_kernel_that_hashes() -> None:
    with pytest.raises(UsageError, match="hashes"):
        hs.plan(
            records=1000, dim=1, epsilon=1.0, bandwidth=0.1, kernel="gaussian", bounds=(0, 1), trust="local"
        )
