"""What ``hs.audit`` takes, what it refuses, and what it says of releases that cheat."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from typing import Any

import pytest

import hushsum as hs
from hushsum.auditing import AuditReport, AuditRow, Half, report_of
from hushsum.errors import SecretRefused, UsageError
from hushsum.privacy import NO_NOISE, IntegerNoise, Mechanism
from hushsum.releases import PublicFacts, TableFunction

PROMISES: list[dict[str, Any]] = [
    {"epsilon": 1.0},
    {"epsilon": 0.1, "relation": "replace"},
    {"epsilon": 1.0, "delta": 1e-6},
    {"epsilon": 0.5, "delta": 1e-5, "relation": "replace"},
    {"rho": 0.3},
]


def released(promise: dict[str, Any], persons: int | None = None, rows: int = 40) -> TableFunction:
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=rows, width=30, max_per_unit=persons)
    tally.add([[0.0, 0.0]] * 5, units=None if persons is None else list("abcab"))
    function = tally.release(**promise)
    assert isinstance(function, TableFunction)
    return function


def broken(function: TableFunction) -> set[str]:
    return {row.what for row in hs.audit(function, seed=1).broken}


@pytest.mark.parametrize("persons", [None, 3])
@pytest.mark.parametrize("promise", PROMISES, ids=str)
class TestReleases:
    def test_a_release_keeps_its_claim(self, promise: dict[str, Any], persons: int | None) -> None:
        report = hs.audit(released(promise, persons), seed=1)
        assert report.holds, str(report)
        assert report.weakest_power >= 0.99
        halves = {row.half for row in report.rows}
        assert halves == {Half.CALIBRATION, Half.SENSITIVITY, Half.NOISE}

    def test_less_stated_noise_than_the_claim_needs(
        self, promise: dict[str, Any], persons: int | None
    ) -> None:
        """One per cent less is enough: this half is arithmetic, not statistics."""
        function = released(promise, persons)
        less = IntegerNoise(function.noise.mechanism, function.noise.parameter * Fraction(99, 100))
        assert broken(replace(function, noise=less)) == {"stated noise"}

    def test_no_noise(self, promise: dict[str, Any], persons: int | None) -> None:
        assert "stated noise" in broken(replace(released(promise, persons), noise=NO_NOISE))

    def test_an_exact_count_where_it_is_private(self, promise: dict[str, Any], persons: int | None) -> None:
        public = promise.get("relation") == "replace" and persons is None
        found = broken(replace(released(promise, persons), count_noise=NO_NOISE))
        assert found == (set() if public else {"stated noise"})


@pytest.mark.parametrize("promise", [{"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.3}], ids=str)
@pytest.mark.parametrize("variance", [Fraction(1, 1 << 30), Fraction(1 << 20)])
def test_skellam_noise_of_a_variance_that_nothing_is_proven_for(
    promise: dict[str, Any], variance: Fraction
) -> None:
    function, noise = released(promise), IntegerNoise("skellam", variance)
    claim = replace(function.claim, mechanism=Mechanism.of("skellam"))
    stated = replace(function, noise=noise, count_noise=noise, facts=PublicFacts(claim))
    assert "stated noise" in broken(stated)


def test_a_seeded_release_protects_nobody() -> None:
    function = released({"epsilon": 1.0, "insecure_noise_seed": 1})
    assert broken(function) == {"noise source"}


def test_a_claim_beyond_sampling_is_not_said_to_hold() -> None:
    report = hs.audit(released({"epsilon": 900.0, "rows": 1}), seed=1)
    assert not report.holds
    assert not report.broken
    assert "untested" in str(report)
    assert "too little noise" in report.sentence()


def test_many_rows_are_simulated_on_a_few_cells() -> None:
    report = hs.audit(released({"epsilon": 0.1, "delta": 1e-9}, rows=3000), seed=1)
    (noise,) = (row for row in report.rows if row.half is Half.NOISE)
    assert noise.holds
    assert "16 cells" in noise.what


def test_a_kernel_and_a_basis_are_audited() -> None:
    kernel = hs.HammingKernel(dim=3)
    assert hs.audit(kernel, seed=1).holds
    basis = hs.race(kernel, rows=10, width=20).basis
    assert all(row.half is Half.SENSITIVITY for row in hs.audit(basis, seed=1).rows)


def test_a_seed_repeats_an_audit() -> None:
    function = released({"epsilon": 1.0})
    assert hs.audit(function, seed=3) == hs.audit(function, seed=3)
    assert hs.audit(function, seed=3) != hs.audit(function, seed=4)


def test_nothing_secret_is_taken() -> None:
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0))
    with pytest.raises(SecretRefused, match=r"audit tally\.basis"):
        hs.audit(tally)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [hs.GaussianKernel(dim=1, bandwidth=1.0), "skin.hush", 7])
def test_what_has_no_audit_is_refused(target: Any) -> None:
    with pytest.raises(UsageError, match="audit"):
        hs.audit(target)


class TestReport:
    SOUND = AuditRow("a", Half.NOISE, "epsilon", 1.0, 0.5, 0.995, 10)
    BROKEN = AuditRow("b", Half.SMOKE, "mu", 1.0, float("inf"), 0.995, 10)

    def test_it_holds_if_every_row_does(self) -> None:
        assert AuditReport((self.SOUND,)).holds
        assert AuditReport((self.SOUND,)).sentence().startswith("all 1 claims hold")
        both = AuditReport((self.SOUND, self.BROKEN))
        assert not both.holds
        assert both.broken == (self.BROKEN,)
        assert both.sentence() == "b claims mu = 1, but has at least inf"

    def test_the_edge_is_allowed(self) -> None:
        assert replace(self.SOUND, lower_bound=1.0).holds
        assert not replace(self.SOUND, lower_bound=1.0000001).holds

    def test_a_test_without_power_says_nothing(self) -> None:
        assert replace(self.SOUND, power=0.5).verdict == "untested"
        assert replace(self.SOUND, power=0.5, half=Half.SENSITIVITY).verdict == "holds"

    def test_it_prints_a_table_and_gives_dicts(self) -> None:
        report = AuditReport((self.SOUND, self.BROKEN))
        lines = str(report).splitlines()
        assert len(lines) == 3
        assert lines[2].endswith("BROKEN")
        assert json.loads(json.dumps(report.as_dicts()))[1]["lower_bound"] is None
        assert report.as_dicts()[0]["half"] == "noise"

    def test_it_is_frozen_and_never_empty(self) -> None:
        with pytest.raises(FrozenInstanceError):
            AuditReport(()).rows = ()  # type: ignore[misc]
        with pytest.raises(UsageError, match="nothing to audit"):
            report_of([])
