"""Worlds of several parties: noise in shares, coins, and the reports of single persons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.outside_audits.worlds import TABLES, Budget, Floats, Sampler, World, log_ratio
from hushsum.privacy import (
    BINOMIAL,
    GAUSSIAN,
    HADAMARD,
    LAPLACE,
    SHUFFLED_HADAMARD,
    SKELLAM,
    Sensitivity,
    UnitChange,
    calibrate,
    hadamard_response,
    noise_shares,
)
from hushsum.privacy.accounting import local_epsilon_for
from hushsum.privacy.noise import NoiseSource, log_odds_coins

SITES, DROPOUTS, COLLUDING = 9, 1, 2
HONEST = SITES - DROPOUTS - COLLUDING
_COUNT_SHARE = Fraction(1, 50)
_PERSONS = 200
_ORDER, _CELLS = 8, (1, 2)


def party_worlds() -> Iterator[World]:
    """Shares, binomial noise, and reports."""
    pair = f"one record in {{}}; {SITES} sites, {DROPOUTS} left, {COLLUDING} collude"
    yield World(
        "noise shares",
        pair.format("1 row"),
        True,
        frozenset({LAPLACE}),
        lambda budget: _shared(budget, rows=1, expected=LAPLACE),
        TABLES,
    )
    yield World(
        "noise shares",
        pair.format("400 rows"),
        False,
        frozenset({GAUSSIAN}),
        lambda budget: _shared(budget, rows=400, expected=GAUSSIAN),
        {0.5: 40_000, 1.0: 40_000, 3.0: 20_000},
    )
    yield World(
        "noise shares, small",
        pair.format("1 row"),
        False,
        frozenset({SKELLAM}),
        lambda budget: _shared(budget, rows=1, expected=SKELLAM),
        TABLES,
        gaussian=False,
    )
    yield World("binomial", "one record in 20 rows", False, frozenset({BINOMIAL}), _binomial, TABLES)
    yield World(
        "local reports",
        "another cell",
        True,
        frozenset({str(HADAMARD)}),
        _report,
        {0.5: 20_000, 1.0: 20_000, 3.0: 20_000},
    )
    yield World(
        "shuffled reports",
        f"another cell, {_PERSONS} persons",
        False,
        frozenset({str(SHUFFLED_HADAMARD)}),
        _shuffled,
        {0.5: 3000, 1.0: 3000},
        largest_epsilon=1.0,
        gaussian=False,
    )


def _shared(budget: Budget, *, rows: int, expected: str) -> Sampler:
    """The sum of the shares of the honest sites: the others know theirs and take them off."""
    shares = noise_shares(
        budget.promise,
        UnitChange(Sensitivity(rows, rows, 1), 1, 1),
        cells=rows,
        count_share=_COUNT_SHARE,
        honest=HONEST,
    )
    # Of a large ε a single cell may have Skellam noise or Gaussian noise of the least share.
    assert shares.table.mechanism == expected or expected == SKELLAM

    def sampler(side: int, number: int) -> Floats:
        total = np.zeros(number)
        with NoiseSource.fresh() as source:
            for share, cells in zip(shares, (rows, 1), strict=True):
                for start in range(0, number, 1000):
                    many = min(1000, number - start)
                    drawn = share.draw(many * cells * HONEST, source).reshape(HONEST, many, cells).sum(axis=0)
                    total[start : start + many] += log_ratio(drawn, share, HONEST, side)
        return total

    return sampler


def _binomial(budget: Budget) -> Sampler:
    change = UnitChange(Sensitivity(20, 20, 1), 1, 1)
    noises = calibrate(budget.promise, change, cells=20, count_share=_COUNT_SHARE, mechanism=BINOMIAL)

    def sampler(side: int, number: int) -> Floats:
        total = np.zeros(number)
        with NoiseSource.fresh() as source:
            for noise, cells in zip(noises, (20, 1), strict=True):
                total += log_ratio(noise.draw(number * cells, source).reshape(number, cells), noise, 1, side)
        return total

    return sampler


def _report(budget: Budget) -> Sampler:
    """One report: row and column are identically distributed, so the sign at this column tells all."""
    epsilon = Fraction(budget.epsilon)

    def sampler(side: int, number: int) -> Floats:
        scores = np.empty(number)
        with NoiseSource.fresh() as source:
            for i in range(number):
                found = hadamard_response(
                    lambda row: _CELLS[side], rows=3, order=_ORDER, epsilon=epsilon, source=source
                )
                scores[i] = _log_likelihood(1, found.column, found.negative, budget.epsilon)
                scores[i] -= _log_likelihood(0, found.column, found.negative, budget.epsilon)
        return scores

    return sampler


def _log_likelihood(side: int, column: int, negative: bool, epsilon: float) -> float:
    true = (_CELLS[side] & column).bit_count() % 2 == 1
    return -math.log1p(math.exp(-epsilon if negative == true else epsilon))


def _shuffled(budget: Budget) -> Sampler:
    """All persons but one have the first cell; only how often each report came is seen.

    Let C be those counts, P the distribution of a report of the first cell and P' that of the other. With one
    report by P' the likelihood of C is that of all by P times ``Σ_j C_j/n·P'(j)/P(j)``.
    """
    assert budget.delta is not None
    local = local_epsilon_for(budget.epsilon, _PERSONS, budget.delta)
    exact = Fraction(local)
    columns = np.arange(_ORDER)
    signs = [np.array([(cell & int(c)).bit_count() % 2 for c in columns]) for cell in _CELLS]
    # How the likelihood of a report changes with the cell: by its column, and by its sign.
    changed = signs[0] != signs[1]
    likely = np.where(changed, math.exp(-local), 1.0)
    unlikely = np.where(changed, math.exp(local), 1.0)

    def sampler(side: int, number: int) -> Floats:
        scores = np.empty(number)
        rng = np.random.default_rng(side)
        with NoiseSource.fresh() as source:
            for i in range(number):
                # Columns are uniform and say nothing of the cells; their coins are the exact ones.
                drawn = rng.integers(0, _ORDER, _PERSONS)
                other = np.array(log_odds_coins([exact] * _PERSONS, source), bool)
                as_first = ~other
                if side and changed[drawn[0]]:
                    as_first[0] = other[0]
                ratios = np.where(as_first, likely[drawn], unlikely[drawn])
                scores[i] = math.log(float(ratios.mean()))
        return scores

    return sampler
