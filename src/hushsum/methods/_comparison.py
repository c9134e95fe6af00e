"""Sizes for releases that are made to be compared: the smallest moves of records that a test finds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from hushsum._types import Floats
from hushsum.errors import Parameter, UsageError
from hushsum.kernels import MOST_COORDINATES, sobol_points
from hushsum.privacy import Calibration, Relation
from hushsum.records import Bounds
from hushsum.tables import Reading

from ._method import Method
from ._prediction import Option, PredictionRequest

__all__ = ["comparison_option", "option_of_reading"]

_LEVEL: Final = 0.05
_FOUND: Final = 0.5
"""The move that is reported is found with this probability by a test of this level."""

# Standard deviations of typical records, as parts of the sides of the box.
_SPREADS: Final = (1.0 / 12.0, 1.0 / 6.0)
_RECORDS: Final = 128
_PLACES: Final = 64
# The move over which slopes are taken, in standard deviations.
_STEP: Final = 0.25
# Columns along which records are moved; of more, some that are spread evenly.
_MOST_MOVED: Final = 8

_COUNT_SHARES: Final = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))

# Up to these sizes, this many seeds are compared: what a few functions show depends on which they are.
_SEEDS: Final = ((1, 96), (6, 40), (8, 16), (32, 4))


def comparison_option(methods: Sequence[Method], request: PredictionRequest, seed: int) -> Option | None:
    """The table with which a test of two releases finds the smallest moves of the records; None where no
    method suits.

    Public quantities alone decide, so that two owners who declare the same count the same table. It is one of
    the first method with settings for comparisons. ``seed`` is that of its random functions; 0 compares some.
    """
    if request.bounds is None or request.kernel.dim is None:
        rule = "must be declared for a release that is to be compared, of columns of numbers"
        raise UsageError("bounds", rule, got="none", remedy=("give ", Parameter("bounds")))
    found = [
        (_detected_move(reading, request, _calibrated(reading, request, share)), settings, reading, method)
        for share in _shares(request)[-2:-1] or _shares(request)
        for settings, reading, method in _candidates(methods, request, seed)
    ]
    if not found:
        return None
    _, settings, reading, method = min(found, key=lambda each: each[0])
    option = option_of_reading(method, request, reading)
    return None if option is None else replace(option, settings={**option.settings, **settings})


def option_of_reading(method: Method, request: PredictionRequest, reading: Reading) -> Option | None:
    """The release of a table that exists, with the best share of the count for a test, and the move that is
    found; None if the table is not of this method.
    """
    assert method.predict_reading is not None
    moves = {
        share: _detected_move(reading, request, _calibrated(reading, request, share))
        for share in _shares(request)
    }
    share = min(moves, key=lambda each: moves[each])
    options = method.predict_reading(replace(request, count_share=share), reading)
    return replace(options[0], move=moves[share]) if options else None


def _candidates(
    methods: Sequence[Method], request: PredictionRequest, seed: int
) -> Iterator[tuple[dict[str, Any], Reading, Method]]:
    """The settings of tables, and how they are read."""
    sized = [each for each in methods if each.comparison_settings]
    sizes = {"rows": request.rows, "width": request.width}
    few = (request.kernel.dim or 1) <= _MOST_MOVED
    for method in sized[:1]:
        given = {
            name: each for name, each in sizes.items() if isinstance(each, int) and name in method.settings
        }
        for settings in method.comparison_settings:
            size = next(iter(settings.values()))
            number = next((seeds for most, seeds in _SEEDS if size <= most), 1) if few else 1
            for each in [seed] if seed else range(number):
                chosen = {**settings, "seed": each, **given}
                yield chosen, _reading(method, request, chosen), method
    if not sized:
        for method in methods:
            assert method.predict is not None
            for option in method.predict(request):
                yield option.sizes, _reading(method, request, option.sizes), method


def _reading(method: Method, request: PredictionRequest, settings: dict[str, Any]) -> Reading:
    assert method.tally is not None
    return method.tally(request.kernel, bounds=request.bounds, **settings).reading


def _shares(request: PredictionRequest) -> tuple[Fraction, ...]:
    """Shares of the count to compare; it costs nothing where the number of records is public."""
    if request.count_share is not None:
        return (request.count_share,)
    return _COUNT_SHARES if request.relation is Relation.ADD_REMOVE else _COUNT_SHARES[:1]


def _calibrated(reading: Reading, request: PredictionRequest, share: Fraction) -> Calibration:
    return replace(request, count_share=share).calibration(reading.basis)


def _detected_move(reading: Reading, request: PredictionRequest, calibration: Calibration) -> float:
    """How far records must move for a test to find it with probability 1/2, in parts of the declared ranges.

    The probability is a mean: half of it for moves along one column, half for one along all columns together.
    Records are normal around the centre of the box; the sampling error is that of records all over the box.
    That of the normal ones would leave too few functions for data that vary in fewer directions: of earnings,
    skin tones, shuttle and RNA both were compared.
    """
    assert request.bounds is not None
    sampling, mean_slopes = _answers_of(reading, request.bounds)
    basis, number = reading.basis, float(request.records)
    places = basis.prepare_queries(_normal(request.bounds, max(_SPREADS), _PLACES))
    noise = calibration.table.variance * reading.noise_covariance(places)
    whole = np.zeros((_PLACES + 1, _PLACES + 1))
    whole[:-1, :-1] = 2.0 * (noise + number * sampling)
    whole[np.diag_indices(_PLACES)] += 1e-9 * float(np.trace(whole)) / _PLACES
    whole[-1, -1] = 2.0 * calibration.count.variance + 1e-6
    lengths = []
    for mean, slopes in mean_slopes:
        # The direction in which sums change with the number of records is of no use.
        moved = np.linalg.solve(whole, np.column_stack([number * slopes, mean]))
        along = mean @ moved
        form = number * slopes.T @ moved[:, :-1] - np.outer(along[:-1], along[:-1]) / along[-1]
        lengths.append([*np.diag(form), *np.full(len(form), form.sum() / len(form))])
    dim = request.kernel.dim or 1
    degrees = min(2 * dim, math.prod(basis.shape))
    # A move of s standard deviations has the noncentrality s² times that of one.
    found = _least_scale(np.array(lengths), degrees)
    return found * sum(_SPREADS) / len(_SPREADS)


def _answers_of(reading: Reading, box: Bounds) -> tuple[Floats, list[tuple[Floats, Floats]]]:
    """The covariance of what a record anywhere in the box adds to the answers at public places; and for every
    spread of records the mean of it and of one, and its slopes along some columns, per standard deviation.
    """
    basis = reading.basis
    places = basis.prepare_queries(_normal(box, max(_SPREADS), _PLACES))
    answers = reading.record_answers(basis.prepare(_typical_records(box)), places)
    anywhere, *parts = answers.reshape(1 + len(_SPREADS) * (1 + 2 * _moved(box)), _RECORDS, -1)
    means = np.array([np.append(each.mean(axis=0), 0.0) for each in parts]).reshape(
        len(_SPREADS), -1, _PLACES + 1
    )
    one = np.append(np.zeros(_PLACES), 1.0)
    found = [(each[0] + one, (each[1::2] - each[2::2]).T / (2.0 * _STEP)) for each in means]
    return np.atleast_2d(np.cov(anywhere.T, bias=True)), found


def _moved(box: Bounds) -> int:
    return min(box.dim, _MOST_MOVED)


@lru_cache(maxsize=4)
def _typical_records(box: Bounds) -> Floats:
    """Records anywhere in the box; and normal ones of every spread, as they are and moved to either side."""
    low, high = np.array(box.low), np.array(box.high)
    columns = np.linspace(0, box.dim - 1, _moved(box)).astype(np.int64)
    groups = [low + (high - low) * _even(box.dim, _RECORDS)]
    for spread in _SPREADS:
        records = _normal(box, spread, _RECORDS)
        groups.append(records)
        for step in _STEP * spread * np.diag(high - low)[columns]:
            groups += [records + step, records - step]
    return np.asarray(np.clip(np.concatenate(groups), low, high))


@lru_cache(maxsize=16)
def _even(dim: int, number: int) -> Floats:
    # Coordinates beyond those of a Sobol sequence repeat its own with another scrambling.
    parts = [
        sobol_points(f"comparison {first}", 0, number, min(MOST_COORDINATES, dim - first))
        for first in range(0, dim, MOST_COORDINATES)
    ]
    return np.concatenate(parts, axis=1)


def _normal(box: Bounds, spread: float, number: int) -> Floats:
    """Normal records around the centre of the box."""
    from scipy.special import ndtri

    sides = np.array(box.high) - np.array(box.low)
    return np.asarray(np.array(box.centre) + spread * sides * ndtri(_even(box.dim, number)))


def _least_scale(lengths: Floats, degrees: int) -> float:
    """The s at which tests of χ² with noncentrality s²·lengths reject with the mean probability 1/2."""
    at, power = _powers(degrees)
    scales = np.geomspace(1e-6, 1e6, 300)
    found = np.interp(scales[:, np.newaxis] ** 2 * lengths.ravel(), at, power, left=_LEVEL).mean(axis=1)
    return math.exp(float(np.interp(_FOUND, found, np.log(scales))))


@lru_cache(maxsize=64)
def _powers(degrees: int) -> tuple[Floats, Floats]:
    from scipy.stats import chi2, ncx2

    at = np.geomspace(1e-2, 1e4, 200)
    return at, np.asarray(ncx2.sf(chi2.isf(_LEVEL, degrees), degrees, at))
