"""Whether the noise that a released file states suffices for what it claims; from its public header alone.

Nothing is taken over from the code that calibrates: the spent budget is computed forwards, from noise to
claim, where the release went backwards.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hushsum.auditing.report import AuditRow, Half
from hushsum.privacy.accounting import discrete_gaussian_delta, vector_delta, zcdp_delta
from hushsum.privacy.calibration import (
    GAMMA,
    GAUSSIAN,
    LAPLACE,
    IntegerNoise,
    Sensitivity,
    UnitChange,
    root_above,
)
from hushsum.privacy.claim import Claim
from hushsum.releases.noisy_table import NoisyTable


def audit_calibration(function: NoisyTable) -> list[AuditRow]:
    """What the stated noise spends, against the claim; and whether anyone could know that noise."""
    claim = function.claim
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    rows = [_spent(claim, change, function.cells.size, function.noise, function.count_noise)]
    known = 0.0 if claim.secure else 1.0
    rows.append(AuditRow("noise source", Half.CALIBRATION, "known seeds", 0.0, known, 1.0, 0))
    return rows


def _spent(
    claim: Claim, change: UnitChange, cells: int, table: IntegerNoise, count: IntegerNoise
) -> AuditRow:
    promise, moved, moves = claim.promise, change.table, change.count
    if promise.pure:
        assert promise.epsilon is not None
        return _row(
            "epsilon", promise.epsilon, _sum(_table_epsilon(moved, cells, table), _epsilon(moves, count))
        )
    rho = _sum(_rho(moved.l2_squared, table), _rho(moves**2, count))
    if promise.rho is not None:
        return _row("rho", promise.rho, rho)
    assert promise.epsilon is not None
    if rho is None:
        return _row("delta", promise.delta, None)
    deltas = [zcdp_delta(rho, promise.epsilon)]
    if moved.largest == 1 and moves <= 1:
        deltas.append(
            discrete_gaussian_delta(
                promise.epsilon,
                cells=moved.l2_squared,
                variance=table.parameter,
                count_variance=count.parameter if moves else None,
            )
        )
    else:
        deltas.append(
            vector_delta(
                promise.epsilon,
                l2_squared=moved.l2_squared,
                cells=cells,
                variance=table.parameter,
                count=moves,
                count_variance=count.parameter if moves else None,
            )
        )
    return _row("delta", promise.delta, Fraction(min(deltas)))


def _row(quantity: str, claimed: Fraction, spent: Fraction | None) -> AuditRow:
    """The comparison is of exact rationals; floats are for the eye, and must not turn it over."""
    shown = math.inf if spent is None else float(spent)
    if spent is not None and spent <= claimed:
        shown = min(shown, float(claimed))
    elif shown <= float(claimed):
        shown = math.nextafter(float(claimed), math.inf)
    return AuditRow("stated noise", Half.CALIBRATION, quantity, float(claimed), shown, 1.0, 0)


def _table_epsilon(moved: Sensitivity, cells: int, noise: IntegerNoise) -> Fraction | None:
    """Pure ε of the table: of Laplace noise by Δ1, of the Gamma-radius law on all its cells by Δ2."""
    if noise.mechanism != GAMMA:
        return _epsilon(moved.l1, noise)
    return root_above(moved.l2_squared) / noise.parameter if noise.cells == cells else None


def _epsilon(l1: int, noise: IntegerNoise) -> Fraction | None:
    """Pure ε of a move of ``l1``; None for infinitely much, as without noise or with another kind of it."""
    if l1 == 0:
        return Fraction(0)
    return Fraction(l1) / noise.parameter if noise.mechanism == LAPLACE and noise.parameter > 0 else None


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
