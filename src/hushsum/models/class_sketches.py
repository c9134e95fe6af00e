"""Decisions from one released sketch per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.models.enough_records import enough_records, shares_within_noise
from hushsum.releases.sketch import TableFunction

_DEEPEST = -30.0
_DISTINCT = 3.0
"""A class with so many standard errors of its count differs from an empty one."""
_FLOOR = 2.0
"""A class is divided by no fewer records than so many standard errors of its count."""


@dataclass(frozen=True, slots=True)
class SketchReading:
    """The functions of the classes in the order of ``classes_``, how many records each has, by how much its
    sums are divided, the standard error that noise gives to them, which classes take part, and what each
    class weighs where none does.
    """

    functions: list[TableFunction]
    counts: Floats
    sizes: Floats
    noise: Floats
    known: NDArray[np.int64]
    shares: Floats

    @classmethod
    def of(cls, functions: list[Any]) -> SketchReading:
        """A class whose count cannot be distinguished from 0 takes no part beside two that can.

        With fewer than two of those all take part, since a rare class and an empty one look alike. A count
        within the noise is taken as two standard errors, so that such a class weighs too little rather than
        its noise too much.
        """
        counts = np.array([each.count for each in functions])
        errors = np.array([each.count_stderr for each in functions])
        known = np.flatnonzero(counts >= _DISTINCT * errors)
        if not enough_records(functions):
            known = known[:0]
        elif len(known) < 2:
            known = np.arange(len(functions))
        return cls(
            functions=functions,
            counts=np.maximum(counts, 0.0),
            sizes=np.maximum(counts, _FLOOR * errors),
            noise=np.array([(each.noise.variance / each.rows) ** 0.5 for each in functions]),
            known=known,
            shares=shares_within_noise(counts, errors),
        )

    def masses(self, queries: Floats, rule: str) -> Floats:
        """What each class weighs at each query, shape (n_queries, n_classes); positive."""
        if not len(self.known):
            return np.tile(self.shares, (len(queries), 1))
        answers = np.stack([self.functions[code].sum(queries) for code in self.known], axis=1)
        noise = self.noise[self.known]
        if rule == "likelihood":
            answers, noise = answers / self.sizes[self.known], noise / self.sizes[self.known]
        in_noise = np.full((len(queries), len(self.functions)), _DEEPEST)
        in_noise[:, self.known] = np.maximum(answers / noise.max(), _DEEPEST)
        # Rises with the answer and is positive even where noise made that negative: ln(1 + eˣ), which is x
        # well above the noise.
        masses: Floats = np.logaddexp(0.0, in_noise)
        return masses
