"""Reports of the local model, collected into a released function."""

from __future__ import annotations

import io
from base64 import b64decode, b64encode
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused, HushsumError, UsageError
from hushsum.parties import ReportTerms, collect_reports, make_report
from hushsum.parties import _local_reports as local_reports
from hushsum.privacy import Relation
from tests.oracles.local_reports import simulated_reports

KERNEL = hs.EuclideanKernel(dim=1, bandwidth=2.0)
TERMS = ReportTerms.of(KERNEL, epsilon=2.0, rows=100, width=30, bounds=(0, 20), columns=["x"])
X = np.random.default_rng(0).normal(8.0, 2.0, (3000, 1)).clip(0, 20)
QUERIES = np.array([[8.0], [15.0], [1.0]])


def test_answers_are_unbiased_and_their_errors_true() -> None:
    """Over 60 collections of 3,000 reports. The mean of 60 is within 6 standard errors, which happens by
    chance less than once in 10⁸; the spread is within 40 % of the stated one, 4 standard errors of it.
    """
    rng = np.random.default_rng(1)
    truth = KERNEL.exact_sum(X, QUERIES)
    answers = [
        collect_reports(TERMS, simulated_reports(TERMS, X, rng)).query(QUERIES, of="sum") for _ in range(60)
    ]
    values = np.array([each.value for each in answers])
    stated = np.sqrt(np.mean([each.stderr**2 for each in answers], axis=0))
    # The hash functions are the same in all collections: their error is common to all answers.
    common = np.array([each.bound for each in answers]).mean(axis=0)
    assert (np.abs(values.mean(axis=0) - truth) < 6.0 * stated / np.sqrt(60) + 2.0 * common).all()
    assert (values.std(axis=0) < 1.4 * stated).all()
    assert (values.std(axis=0) > 0.4 * stated).all()


def test_intervals_hold_over_reports_and_hash_functions() -> None:
    """Coverage of 40 × 3 intervals at 0.95: below 0.85 by chance less than once in 10⁴."""
    rng, held = np.random.default_rng(2), []
    for seed in range(40):
        terms = ReportTerms.of(KERNEL, epsilon=2.0, rows=100, width=30, seed=seed, bounds=(0, 20))
        answers = collect_reports(terms, simulated_reports(terms, X, rng)).query(QUERIES)
        truth = KERNEL.exact_sum(X, QUERIES) / len(X)
        held.append((answers.lower <= truth) & (truth <= answers.upper))
    assert np.mean(held) > 0.85


def test_a_report_is_one_line_that_the_collector_reads() -> None:
    made = [make_report(TERMS, row[None], insecure_noise_seed=i) for i, row in enumerate(X[:50])]
    assert all(len(each) == 24 for each in made)
    f = collect_reports(TERMS, b"\n".join(made))
    assert (f.reports, f.count, f.count_stderr) == (50, 50.0, 0.0)
    assert f.columns == ("x",)
    assert f.claim.relation is Relation.REPLACE
    assert f.claim.promise.epsilon == 2
    assert len(set(made)) == 50
    # Everybody who knows the seeds can read these.
    assert not f.claim.secure
    assert collect_reports(TERMS, [make_report(TERMS, X[:1])]).claim.secure


def test_reports_in_pieces_are_the_same_as_together() -> None:
    text = simulated_reports(TERMS, X[:100], np.random.default_rng(3))
    lines = text.splitlines(keepends=True)
    whole, pieces = collect_reports(TERMS, text), collect_reports(TERMS, lines)
    np.testing.assert_array_equal(whole.table, pieces.table)


def test_shuffled_reports_claim_less() -> None:
    text = simulated_reports(TERMS, X, np.random.default_rng(4))
    f = collect_reports(TERMS, text, delta=1e-6)
    assert f.claim.epsilon is not None
    assert f.claim.epsilon < 0.5
    assert any("3,000 of them follow" in each for each in f.claim.assumptions)
    fewer = collect_reports(TERMS, text, delta=1e-6, honest=300)
    assert fewer.claim.epsilon is not None
    assert f.claim.epsilon < fewer.claim.epsilon <= 2.0


@pytest.mark.parametrize("honest", [0, 3001])
def test_refuses_impossible_numbers_of_honest_reports(honest: int) -> None:
    text = simulated_reports(TERMS, X, np.random.default_rng(4))
    with pytest.raises(UsageError, match="honest"):
        collect_reports(TERMS, text, delta=1e-6, honest=honest)


def test_a_file_is_read_back() -> None:
    text = simulated_reports(TERMS, X, np.random.default_rng(5))
    for f in (collect_reports(TERMS, text), collect_reports(TERMS, text, delta=1e-6)):
        buffer = io.BytesIO()
        f.save(buffer)
        again = hs.load(io.BytesIO(buffer.getvalue()))
        np.testing.assert_array_equal(again(QUERIES), f(QUERIES))
        assert again.claim == f.claim


def _changed(report: bytes, at: int, value: int) -> bytes:
    data = bytearray(b64decode(report))
    data[at] = value
    return b64encode(bytes(data))


@pytest.mark.parametrize(
    "damaged",
    [
        lambda r: r[:-1],
        lambda r: r + b"A",
        lambda r: b"*" + r[1:],
        lambda r: _changed(r, 0, b64decode(r)[0] ^ 1),  # other terms
        lambda r: _changed(r, 9, 255),  # a row that does not exist
        lambda r: _changed(r, 13, 255),  # a column that does not exist
        lambda r: _changed(r, 16, 4),  # a sign that weighs more
        lambda r: _changed(r, 17, 9),  # another version
        lambda r: b"\x00" * 24,
    ],
)
def test_a_line_that_is_no_report_is_refused(damaged: object) -> None:
    good = make_report(TERMS, [[1.0]], insecure_noise_seed=1)
    assert callable(damaged)
    for given in ([good, damaged(good)], b"\n".join([good, damaged(good), good])):
        with pytest.raises(FileRefused, match="in place of report 2"):
            collect_reports(TERMS, given)


def test_a_report_for_tests_does_not_void_the_claim_of_others() -> None:
    seeded, others = make_report(TERMS, [[1.0]], insecure_noise_seed=1), [make_report(TERMS, [[1.0]])] * 3
    for given in ([*others, seeded], [b"\n".join(others), b"", seeded]):
        with pytest.raises(FileRefused, match="report 4 unlike the first"):
            collect_reports(TERMS, given)
    with pytest.raises(FileRefused, match="report 2 unlike the first"):
        collect_reports(TERMS, [seeded, *others])
    assert not collect_reports(TERMS, [seeded, seeded]).claim.secure
    assert collect_reports(TERMS, others).claim.secure


def test_nothing_to_collect() -> None:
    with pytest.raises(UsageError, match="at least one report"):
        collect_reports(TERMS, b"\n \n")


def test_more_reports_than_a_cell_can_count_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_reports, "_MOST_REPORTS", 2)
    made = [make_report(TERMS, [[1.0]]) for _ in range(3)]
    assert collect_reports(TERMS, made[:2]).reports == 2
    with pytest.raises(UsageError, match="at most 2"):
        collect_reports(TERMS, made)


def test_one_record_a_report() -> None:
    with pytest.raises(UsageError, match="one record"):
        make_report(TERMS, [[1.0], [2.0]])


def test_terms_have_one_spelling() -> None:
    data = TERMS.to_bytes()
    assert ReportTerms.from_bytes(data) == TERMS
    for bad in (
        data + b" ",
        data.replace(b'"2"', b'"2.0"'),
        data.replace(b'"2"', b'"-2"'),
        b"[]",
        b"{",
        b"\xff",
        b"",
    ):
        with pytest.raises(FileRefused):
            ReportTerms.from_bytes(bad)
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1
        with suppress(HushsumError):
            assert ReportTerms.from_bytes(bytes(changed)).digest != TERMS.digest


def test_sets_are_reported_too() -> None:
    terms = ReportTerms.of(hs.JaccardKernel(), epsilon=Fraction(3), rows=20, width=50)
    reports = [make_report(terms, [[1, 2, each % 5]], insecure_noise_seed=each) for each in range(200)]
    assert collect_reports(terms, reports).query([[1, 2]], of="sum").stderr[0] > 0.0
