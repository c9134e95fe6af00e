"""One person's report in the local model: Hadamard response, drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from ._claim import PromiseKind, register_mechanism
from .noise import NoiseSource, independent_places, log_odds_coins

MECHANISM = register_mechanism("hadamard response", PromiseKind.PURE)
# Amplification by shuffling, evaluated in `hushsum.privacy.accounting`.
SHUFFLED_MECHANISM = register_mechanism("hadamard response, shuffled", PromiseKind.APPROXIMATE)


class Response(NamedTuple):
    """A row and a column, both uniform and independent of the person, and one noisy sign."""

    row: int
    column: int
    negative: bool


def hadamard_response(
    cell_of: Callable[[int], int], *, rows: int, order: int, epsilon: Fraction, source: NoiseSource
) -> Response:
    """The response of a person whose cell in row r is ``cell_of(r)``.

    Parameters
    ----------
    cell_of : callable
        Secret. It is called once, for the row that was drawn.
    rows, order : int
        How many rows there are, and the order of the Hadamard matrix: a power of two, at least the number of
        cells of a row.
    epsilon : Fraction
    source : NoiseSource
        Open, of this report alone.

    Privacy
    -------
    ε-differential privacy in the local model: for every two persons, that is for every two functions
    ``cell_of``, and every response. Row and column do not depend on the person. Given them, the true sign is
    H[cell, column] = ±1, and the sign that is sent is the other one with probability 1/(1 + e^ε), exactly
    (`log_odds_coins`). So every sign has probability e^ε/(1 + e^ε) or 1/(1 + e^ε), and the ratio for two
    persons is 1, e^ε or e^−ε. That the drawn row decides which hash function is evaluated reveals nothing:
    the row is part of the response.

    Notes
    -----
    Acharya, Sun and Zhang, *Hadamard response*, AISTATS 2019, with one bit per person.

    Examples
    --------
    >>> with NoiseSource.insecure(3) as source:
    ...     hadamard_response(lambda row: 5, rows=4, order=8, epsilon=Fraction(1), source=source).row < 4
    True
    """
    row = int(independent_places(1, rows, source)[0])
    column = int(independent_places(1, order, source)[0])
    [other] = log_odds_coins([epsilon], source)
    return Response(row, column, ((cell_of(row) & column).bit_count() % 2 == 1) != other)


def local_source(insecure_noise_seed: int | None) -> NoiseSource:
    """The randomness of one report. With a seed it can be repeated, for tests."""
    return NoiseSource.for_release(insecure_noise_seed)


def sign_gain(epsilon: Fraction) -> float:
    """The mean of a noisy sign over the true one, tanh(ε/2).

    >>> round(sign_gain(Fraction(1)), 4)
    0.4621
    """
    return math.tanh(float(epsilon) / 2.0)
