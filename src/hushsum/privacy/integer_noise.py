"""Noise on integers: the laws that releases draw from, their variances, and how files state them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.files.encoding import stored_rational
from hushsum.privacy.noise import (
    NoiseSource,
    centred_binomial,
    check_trials,
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_share,
    gamma_radius,
    gamma_radius_variance,
    gaussian_variance,
    laplace_variance,
    skellam,
)
from hushsum.privacy.noise.skellam_sampler import LARGEST_SKELLAM, SMALLEST_SKELLAM

LAPLACE = "discrete laplace"
GAUSSIAN = "discrete gaussian"
GAMMA = "gamma radius"
FACTORISED = "factorised discrete gaussian"
INTERVALS = "interval sums discrete laplace"
BINOMIAL = "binomial"
SKELLAM = "skellam"
SUM = "sum"
NONE = "none"


@dataclass(frozen=True, slots=True)
class IntegerNoise:
    """Noise on integers: a mechanism and its rational parameter (the Laplace scale, the variance of Gaussian
    or Skellam noise, or the trials of the binomial law). That of the Gamma-radius law is the scale of the
    length that ``cells`` cells share. Of a step of a stream the parameter is the variance, rounded upwards.

    Of Laplace noise ``parts`` may be above 1: the law is then that of one of so many independent shares that
    add up to it. A sum of independent noises has the mechanism ``"sum"`` and ``terms``, each with how often
    it was added.

    >>> IntegerNoise(LAPLACE, Fraction(1000)).variance > 1.99e6
    True
    >>> share = IntegerNoise(LAPLACE, Fraction(1000), parts=14)
    >>> IntegerNoise.sum_of([(14, share)]) == IntegerNoise(LAPLACE, Fraction(1000))
    True
    """

    mechanism: str
    parameter: Fraction
    cells: int = 1
    parts: int = 1
    terms: tuple[tuple[int, IntegerNoise], ...] = ()

    @classmethod
    def sum_of(cls, terms: Sequence[tuple[int, IntegerNoise]]) -> IntegerNoise:
        """The sum of independent noises, each added so many times; sums among them are resolved."""
        flat: list[tuple[int, IntegerNoise]] = []
        for times, noise in terms:
            flat.extend((times * inner, each) for inner, each in noise.terms or ((1, noise),))
        if all(noise.mechanism == NONE for _, noise in flat):
            return NO_NOISE
        if len(flat) == 1:
            times, noise = flat[0]
            if noise.mechanism == LAPLACE and times == noise.parts:
                return replace(noise, parts=1)
            if times == 1:
                return noise
        return cls(SUM, Fraction(0), terms=tuple(flat))

    @property
    def variance(self) -> float:
        """The variance of one draw, exact for the discrete law; for the Gamma-radius law but for rounding."""
        if self.mechanism == LAPLACE:
            return laplace_variance(self.parameter) / self.parts
        if self.mechanism == SUM:
            return sum(times * noise.variance for times, noise in self.terms)
        if self.mechanism == BINOMIAL:
            return check_trials(self.parameter) / 4.0
        if self.mechanism == GAMMA:
            return gamma_radius_variance(self.parameter, self.cells)
        if self.mechanism in (SKELLAM, *SUMS):
            return float(self.parameter)
        return gaussian_variance(self.parameter) if self.mechanism == GAUSSIAN else 0.0

    @property
    def in_words(self) -> str:
        """The mechanism as people read it; of a sum those of its terms."""
        if self.mechanism != SUM:
            return self.mechanism if self.parts == 1 else f"1/{self.parts} of {self.mechanism}"
        return " + ".join(f"{times} × {noise.in_words}" for times, noise in self.terms[:4]) + (
            " + …" if len(self.terms) > 4 else ""
        )

    def draw(self, size: int, source: NoiseSource, *, threads: int = 1) -> NDArray[np.int64]:
        """Independent draws; of the Gamma-radius law one vector, whose cells are uncorrelated."""
        if self.mechanism == GAMMA:
            if size != self.cells:
                raise ValueError("one length is shared by all cells")
            return gamma_radius(size, self.parameter, source)
        if self.mechanism in SUMS:
            raise ValueError("the noise of a step is a sum of draws of all steps before")
        if self.mechanism == LAPLACE and self.parts > 1:
            return discrete_laplace_share(size, self.parameter, self.parts, source)
        if self.mechanism == LAPLACE:
            return discrete_laplace(size, self.parameter, source, threads=threads)
        if self.mechanism == BINOMIAL:
            return centred_binomial(size, int(self.parameter), source)
        if self.mechanism == SKELLAM:
            return skellam(size, self.parameter, source)
        if self.mechanism == SUM:
            total = np.zeros(size, np.int64)
            for times, noise in self.terms:
                for _ in range(times):
                    total += noise.draw(size, source, threads=threads)
            return total
        if self.mechanism == GAUSSIAN:
            return discrete_gaussian(size, self.parameter, source, threads=threads)
        return np.zeros(size, np.int64)

    def as_json(self) -> dict[str, Any]:
        """The noise for a file's header."""
        if self.mechanism == SUM:
            terms = [{"times": times, **noise.as_json()} for times, noise in self.terms]
            return {"mechanism": self.mechanism, "terms": terms}
        shared = {"cells": self.cells} if self.mechanism == GAMMA else {}
        shared |= {"parts": self.parts} if self.parts > 1 else {}
        return {"mechanism": self.mechanism, "parameter": str(self.parameter), **shared}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> IntegerNoise:
        """The noise of a file's header; ValueError if it is none that could have been drawn."""
        if data["mechanism"] == SUM:
            return cls._sum_from_json(data["terms"])
        if data["mechanism"] not in _MECHANISMS:
            raise ValueError("unknown noise")
        cells = data["cells"] if data["mechanism"] == GAMMA else 1
        parts = data.get("parts", 1) if data["mechanism"] == LAPLACE else 1
        if type(cells) is not int or cells < 1 or type(parts) is not int or not 1 <= parts <= MOST_TERMS:
            raise ValueError("cells")
        noise = cls(data["mechanism"], stored_rational(data["parameter"]), cells, parts)
        if not math.isfinite(noise.variance):
            raise ValueError("parameter")
        if noise.mechanism == SKELLAM and not SMALLEST_SKELLAM <= noise.parameter <= LARGEST_SKELLAM:
            raise ValueError("parameter")
        return noise

    @classmethod
    def _sum_from_json(cls, data: Any) -> IntegerNoise:
        if not isinstance(data, list) or not 1 <= len(data) <= MOST_TERMS:
            raise ValueError("terms")
        terms = []
        for each in data:
            times = each["times"]
            if type(times) is not int or not 1 <= times <= MOST_TERMS or each["mechanism"] == SUM:
                raise ValueError("terms")
            terms.append((times, cls.from_json(each)))
        noise = cls.sum_of(terms)
        if noise.mechanism != SUM:
            raise ValueError("terms")
        return noise


MOST_TERMS = 1 << 16
"""The most noises in a sum, and shares of one."""
SUMS = (FACTORISED, INTERVALS)
"""Mechanisms over time: the noise of what a step shows is a sum of draws, and its parameter is its variance.
"""

_MECHANISMS = (LAPLACE, GAUSSIAN, GAMMA, BINOMIAL, SKELLAM, *SUMS, NONE)
NO_NOISE = IntegerNoise(NONE, Fraction(0))
