"""The audit of a released function, from the public contents of its file.

Three questions: does the stated noise suffice for the claim (calibration), does one record of such a basis
move as little as declared (sensitivity), does noise with these parameters hide it (noise)? The table itself
is not looked at: whether *this* noise was drawn as stated cannot be seen from one table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.audit_tests import Randomness, Step, noise_row, sensitivity_steps
from hushsum.auditing.privacy_loss_lower_bound import (
    GaussianPair,
    audit_gaussian,
    audit_laplace,
    gaussian_draws,
)
from hushsum.auditing.report import AuditRow, Half
from hushsum.auditing.stated_noise import audit_calibration
from hushsum.errors import UsageError
from hushsum.privacy.claim import PERSON
from hushsum.privacy.integer_noise import GAMMA, GAUSSIAN, LAPLACE, IntegerNoise
from hushsum.privacy.noise_shares import protecting_noises
from hushsum.releases.noisy_table import NoisyTable

_MOST_SIMULATED = 1 << 25
_MOST_CELLS = 16
_LARGEST_CAP = 16


def released_steps(function: NoisyTable, *, thorough: bool) -> Iterator[Step]:
    """The tests of one released function."""
    yield Step("stated noise", lambda randomness, step: audit_calibration(function))
    claim = function.claim
    cap = min(claim.records_per_unit, _LARGEST_CAP) if claim.unit == PERSON else None
    yield from sensitivity_steps(function.basis, thorough=thorough, relations=[claim.relation], cap=cap)
    if function.stream_step is not None:
        drawn = function.stream_step.noise.table
        if drawn.mechanism == LAPLACE:
            yield Step("noise of an output", partial(_laplace, drawn, "an output's"))
        else:
            # One cell, moved by its deviation: a record moves each output of a stream by less.
            shift = max(1, round(float(drawn.parameter) ** 0.5))
            yield Step("noise of an output", partial(_gaussian, drawn, None, 1, shift))
        return
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    protecting = protecting_noises(claim, function.noise, function.count_noise)
    if not protecting:
        return
    # Sums of noises are tested by those that the claim rests on; shares have cases of their own.
    noise, count_noise = protecting[0]
    moved, count = change.table, count_noise if change.count else None
    if noise.mechanism in (LAPLACE, GAMMA):
        yield Step("noise of the table", partial(_laplace, noise, "the table's"))
        if count is not None and count.mechanism == LAPLACE:
            yield Step("noise of the count", partial(_laplace, count, "the count's"))
    elif noise.mechanism == GAUSSIAN:
        cells = moved.l2_squared // moved.largest**2
        paired = count if count is not None and count.mechanism == GAUSSIAN else None
        yield Step("noise of table and count", partial(_gaussian, noise, paired, cells, moved.largest))


def _laplace(noise: IntegerNoise, whose: str, randomness: Randomness, step: int) -> list[AuditRow]:
    """One cell moved by about the scale, so that its loss is near 1, where a test needs the fewest draws.

    A scale claims k/scale for a move of every k; over many rows the losses concentrate, and nothing is seen.
    The Gamma-radius law of one cell is Laplace's, rounded.
    """
    shift = max(1, round(noise.parameter))
    one = replace(noise, cells=1)

    def draw(size: int) -> NDArray[np.int64]:
        if noise.mechanism == LAPLACE:
            return noise.draw(size, source)
        return np.concatenate([one.draw(1, source) for _ in range(size)])

    with randomness.noise(step) as source:
        try:
            audit = audit_laplace(draw, shift / noise.parameter, shift=shift)
        except UsageError:
            return [_untested(f"{noise.mechanism}, {whose} noise", "epsilon", float(shift / noise.parameter))]
    return [noise_row(replace(audit, mechanism=noise.mechanism), f"{whose} noise, one cell moved by {shift}")]


def _gaussian(
    noise: IntegerNoise, count: IntegerNoise | None, cells: int, shift: int, randomness: Randomness, step: int
) -> list[AuditRow]:
    """The worst pair itself where it can be afforded; otherwise fewer cells, moved further."""
    pair = GaussianPair(
        float(noise.parameter), cells, shift, None if count is None else float(count.parameter)
    )
    try:
        affordable = cells * gaussian_draws(pair) <= _MOST_SIMULATED
    except UsageError:
        affordable = False
    if not affordable:
        cells = min(cells, _MOST_CELLS)
        shift = max(1, round((float(noise.parameter) / cells) ** 0.5))
        count = None
    with randomness.noise(step) as source:
        try:
            audit = audit_gaussian(
                lambda size: noise.draw(size, source),
                noise.parameter,
                cells=cells,
                shift=shift,
                count=None if count is None else (lambda size: count.draw(size, source), count.parameter),
            )
        except UsageError:
            return [_untested(GAUSSIAN, "mu", GaussianPair(float(noise.parameter), cells, shift).mu)]
    also = "" if count is None else " and the count"
    return [noise_row(audit, f"{cells} cells{also} moved by {shift}")]


def _untested(what: str, quantity: str, claimed: float) -> AuditRow:
    return AuditRow(what, Half.NOISE, quantity, claimed, 0.0, 0.0, 0)
