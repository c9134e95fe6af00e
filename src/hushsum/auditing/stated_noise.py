"""Whether the noise that a released file states suffices for what it claims; from its public header alone.

Nothing is taken over from the code that calibrates: the spent budget is computed forwards, from noise to
claim, where the release went backwards.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hushsum.auditing.report import AuditRow, Half
from hushsum.privacy.accounting import discrete_gaussian_delta, vector_delta, zcdp_delta
from hushsum.privacy.accounting.binomial import binomial_delta
from hushsum.privacy.accounting.discrete_gaussian_shares import rho_of_sum
from hushsum.privacy.accounting.skellam import skellam_delta, skellam_rho
from hushsum.privacy.calibration import Sensitivity, UnitChange, root_above
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.integer_noise import BINOMIAL, GAMMA, GAUSSIAN, LAPLACE, SKELLAM, IntegerNoise
from hushsum.privacy.noise_shares import protecting_distance, protecting_noises
from hushsum.privacy.over_time.stream_noise import spent_delta, spent_epsilon, spent_rho
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.stream_step import StreamStep, stream_unit


def audit_calibration(function: NoisyTable) -> list[AuditRow]:
    """What the stated noise spends, against the claim; and whether anyone could know that noise."""
    claim = function.claim
    if function.stream_step is not None:
        return [_spent_by_stream(claim, function.stream_step, function), _known(claim)]
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    noises = protecting_noises(claim, function.noise, function.count_noise)
    spent = [
        _spent(claim, change, function.cells.size, *each, distance=protecting_distance(claim, each))
        for each in noises
    ]
    # Of several noises, each of which protects the records of one site, the worst is reported.
    rows = [max(spent, key=lambda row: row.lower_bound) if spent else _row("noise", Fraction(0), None)]
    rows.append(_known(claim))
    return rows


def _known(claim: Claim) -> AuditRow:
    return AuditRow(
        "noise source", Half.CALIBRATION, "known seeds", 0.0, 0.0 if claim.secure else 1.0, 1.0, 0
    )


def _spent_by_stream(claim: Claim, step: StreamStep, function: NoisyTable) -> AuditRow:
    """What all steps together spend, from the noise of every output."""
    unit = stream_unit(
        function.basis, claim.unit, claim.records_per_unit, claim.relation, removals=step.removals
    )
    promise = claim.promise
    if promise.pure:
        assert promise.epsilon is not None
        spent = spent_epsilon(step.noise, unit) if step.noise.intervals else None
        return _row("epsilon", promise.epsilon, spent)
    rho = None if step.noise.intervals else spent_rho(step.noise, unit)
    if promise.rho is not None:
        return _row("rho", promise.rho, rho)
    assert promise.epsilon is not None
    if rho is None:
        return _row("delta", promise.delta, None)
    delta = min(zcdp_delta(rho, promise.epsilon), spent_delta(step.noise, unit, promise.epsilon))
    return _row("delta", promise.delta, Fraction(delta))


def _spent(
    claim: Claim,
    change: UnitChange,
    cells: int,
    table: IntegerNoise,
    count: IntegerNoise,
    *,
    distance: float,
) -> AuditRow:
    """``distance`` is that of sums of shares (`hushsum.privacy.accounting.discrete_gaussian_shares`)."""
    promise, moved, moves = claim.promise, change.table, change.count
    if table.mechanism == BINOMIAL:
        return _row("delta", promise.delta, _binomial_delta(promise, moved, moves, table, count))
    if table.mechanism == SKELLAM:
        return _skellam(promise, moved, moves, table, count)
    if promise.pure or (table.mechanism == LAPLACE and promise.epsilon is not None):
        assert promise.epsilon is not None
        return _row(
            "epsilon", promise.epsilon, _sum(_table_epsilon(moved, cells, table), _epsilon(moves, count))
        )
    rho = _sum(_rho(moved.l2_squared, table), _rho(moves**2, count))
    if promise.rho is not None:
        if rho is not None and distance:
            rho = Fraction(rho_of_sum(rho, distance, cells + 1))
        return _row("rho", promise.rho, rho)
    assert promise.epsilon is not None
    far = (cells + 1) * distance * (1 + 1e-9)
    epsilon = promise.epsilon - 2 * Fraction(far)
    if rho is None or epsilon <= 0:
        return _row("delta", promise.delta, None)
    deltas = [zcdp_delta(rho, epsilon)]
    if moved.largest == 1 and moves <= 1:
        deltas.append(
            discrete_gaussian_delta(
                epsilon,
                cells=moved.l2_squared,
                variance=table.parameter,
                count_variance=count.parameter if moves else None,
            )
        )
    else:
        deltas.append(
            vector_delta(
                epsilon,
                l2_squared=moved.l2_squared,
                cells=cells,
                variance=table.parameter,
                count=moves,
                count_variance=count.parameter if moves else None,
            )
        )
    return _row("delta", promise.delta, Fraction(min(deltas) * math.exp(far) if far else min(deltas)))


def _skellam(
    promise: Promise, moved: Sensitivity, moves: int, table: IntegerNoise, count: IntegerNoise
) -> AuditRow:
    proven = moved.largest == 1 and moves <= 1 and (not moves or count.mechanism == SKELLAM)
    variances = (table.parameter, count.parameter if moves else None)
    if promise.rho is not None:
        rho = skellam_rho(cells=moved.l2_squared, variance=variances[0], count_variance=variances[1])
        return _row("rho", promise.rho, Fraction(rho) if proven else None)
    if promise.epsilon is None or not promise.delta:
        return _row("delta", promise.delta, None)
    delta = skellam_delta(
        promise.epsilon, cells=moved.l2_squared, variance=variances[0], count_variance=variances[1]
    )
    return _row("delta", promise.delta, Fraction(delta) if proven else None)


def _binomial_delta(
    promise: Promise, moved: Sensitivity, moves: int, table: IntegerNoise, count: IntegerNoise
) -> Fraction | None:
    if promise.epsilon is None or moved.largest > 1 or moves > 1:
        return None
    if moves and count.mechanism != BINOMIAL:
        return None
    trials, counted = int(table.parameter), int(count.parameter) if moves else None
    return Fraction(
        binomial_delta(promise.epsilon, cells=moved.l2_squared, trials=trials, count_trials=counted)
    )


def _row(quantity: str, claimed: Fraction, spent: Fraction | None) -> AuditRow:
    """The comparison is of exact rationals; floats are for the eye, and must not turn it over."""
    shown = math.inf if spent is None else float(spent)
    if spent is not None and spent <= claimed:
        shown = min(shown, float(claimed))
    elif shown <= float(claimed):
        shown = math.nextafter(float(claimed), math.inf)
    return AuditRow("stated noise", Half.CALIBRATION, quantity, float(claimed), shown, 1.0, 0)


def _table_epsilon(moved: Sensitivity, cells: int, noise: IntegerNoise) -> Fraction | None:
    """Pure ε of the table: of Laplace noise by Δ1, of the Gamma-radius law by Δ2, where the table has all
    cells that share its length or some of them.
    """
    if noise.mechanism != GAMMA:
        return _epsilon(moved.l1, noise)
    return root_above(moved.l2_squared) / noise.parameter if noise.cells >= cells else None


def _epsilon(l1: int, noise: IntegerNoise) -> Fraction | None:
    """Pure ε of a move of ``l1``; None for infinitely much, as without noise or with another kind of it."""
    if l1 == 0:
        return Fraction(0)
    whole = noise.mechanism == LAPLACE and noise.parameter > 0 and noise.parts == 1
    return Fraction(l1) / noise.parameter if whole else None


def _rho(l2_squared: int, noise: IntegerNoise) -> Fraction | None:
    if l2_squared == 0:
        return Fraction(0)
    return (
        Fraction(l2_squared) / (2 * noise.parameter)
        if noise.mechanism == GAUSSIAN and noise.parameter > 0
        else None
    )


def _sum(table: Fraction | None, count: Fraction | None) -> Fraction | None:
    return None if table is None or count is None else table + count
