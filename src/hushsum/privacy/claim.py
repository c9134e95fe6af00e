"""Neighbouring datasets; promises (the privacy parameters of a release); claims (what it guarantees)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final

from hushsum import _html
from hushsum._types import is_number
from hushsum.errors import ClaimError, Parameter, shown
from hushsum.files.encoding import stored_rational
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.trust_model import Trust

LARGE_EPSILON: Final = 10.0
"""Above it hardly anything is hidden: a suspicion of 10 % may become one of 99.96 %."""


class Relation(StrEnum):
    """The neighbours that a claim makes indistinguishable.

    *Add/remove*: one unit present or absent; the number of records is private. *Replace*: one unit is this or
    another; where the unit is a record, the number of records is public.

    Examples
    --------
    >>> Relation.of("replace")
    <Relation.REPLACE: 'replace'>
    """

    ADD_REMOVE = "add/remove"
    REPLACE = "replace"

    @classmethod
    def of(cls, value: str | Relation) -> Relation:
        """The relation of that name."""
        try:
            return cls(value)
        except ValueError:
            raise ClaimError(
                parameter="relation",
                rule="must be 'add/remove' or 'replace'",
                got=shown(value),
                remedy="choose one",
            ) from None


def exact(name: str, value: float | Fraction) -> Fraction:
    """The rational number a person means: ``0.1`` is one tenth, not its nearest binary fraction.

    Examples
    --------
    >>> exact("epsilon", 0.1)
    Fraction(1, 10)
    """
    if not is_number(value):
        # Never a text itself: who mixes up two arguments gives one of the records.
        got = f"a {type(value).__name__}"
        raise ClaimError(parameter=name, rule="must be a number", got=got, remedy="give a number such as 1.0")
    if isinstance(value, int | Fraction):
        return Fraction(value)
    number = float(value)
    if not math.isfinite(number):
        raise ClaimError(
            parameter=name, rule="must be finite", got=f"{number}", remedy="give a number such as 1.0"
        )
    return Fraction(repr(number))


@dataclass(frozen=True, slots=True)
class Promise:
    """The requested parameters: pure ``epsilon``; ``epsilon`` and ``delta``; or ``rho`` (zero-concentrated
    privacy).

    Examples
    --------
    >>> Promise.of(epsilon=0.5)
    Promise(epsilon=Fraction(1, 2), delta=Fraction(0, 1), rho=None)
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None

    @classmethod
    def of(
        cls,
        *,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
        rho: float | Fraction | None = None,
    ) -> Promise:
        """Check the combination and read the numbers exactly."""
        if (epsilon is None) == (rho is None):
            got = "neither" if epsilon is None else "both"
            raise ClaimError(
                parameter="epsilon",
                rule=("or ", Parameter("rho"), " must be given, one of the two"),
                got=got,
                remedy="give one of them",
            )
        if rho is not None:
            if delta is not None:
                raise ClaimError(
                    parameter="delta",
                    rule="must not be given with rho",
                    got="both",
                    remedy="give rho alone, or epsilon and delta",
                )
            return cls(None, Fraction(0), _positive("rho", rho))
        assert epsilon is not None
        small = Fraction(0) if delta is None else exact("delta", delta)
        if not 0 <= small < 1:
            raise ClaimError(
                parameter="delta",
                rule="must be at least 0 and below 1",
                got=f"{float(small):g}",
                remedy="try 1e-6",
            )
        number = _positive("epsilon", epsilon)
        if number < _SMALLEST_EPSILON:
            raise ClaimError(
                parameter="epsilon",
                rule=f"must be at least {float(_SMALLEST_EPSILON):g}",
                got="less",
                remedy="1.0 is a common choice",
            )
        return cls(number, small, None)

    @property
    def pure(self) -> bool:
        """Whether the promise is pure epsilon."""
        return self.epsilon is not None and self.delta == 0


RECORD = "record"
PERSON = "person"
ADJACENCY_ROW = "adjacency row"
EDGE = "edge"
DIRECTED_EDGE = "directed edge"
UNITS = (RECORD, PERSON, ADJACENCY_ROW, EDGE, DIRECTED_EDGE)
"""Whom a claim may protect. No unit of a graph is ever converted into another one."""

_SMALLEST_EPSILON = Fraction(1, 10**15)
"""Beyond that no noise could be drawn, and intermediate results of the accounting leave the floats."""

_NODE = "node"


def checked_unit(unit: str, allowed: Sequence[str] = UNITS) -> str:
    """A unit, if it is one of those allowed.

    >>> checked_unit("edge")
    'edge'
    """
    if unit == _NODE:
        raise ClaimError(
            parameter="unit",
            rule="'node' is not offered: removing a node changes the rows of all its neighbours",
            remedy="claim 'adjacency row' or 'edge'",
        )
    if unit not in allowed:
        names = [repr(each) for each in allowed]
        raise ClaimError(
            parameter="unit",
            rule=f"must be {' or '.join([', '.join(names[:-1]), names[-1]] if len(names) > 1 else names)}",
            got=shown(unit),
            remedy="choose one",
        )
    return unit


def unit_in_words(unit: str, per_unit: int) -> str:
    """One unit, as claims and reports call it.

    >>> unit_in_words("edge", 2)
    'edge (listed in up to 2 graphs)'
    """
    if unit == PERSON:
        return f"person with up to {per_unit} records"
    if unit in (EDGE, DIRECTED_EDGE) and per_unit > 1:
        return f"{unit} (listed in up to {per_unit} graphs)"
    return f"{unit} (the neighbours of one node in one list of edges)" if unit == ADJACENCY_ROW else unit


_MOST_TIMES = 1e6
"""A larger factor has no meaning for people."""


def in_plain_words(promise: Promise) -> str:
    """How a sentence about a promise ends: the factor, and how often a guess is right, as bounds for people.

    >>> in_plain_words(Promise.of(epsilon=1.0))
    ': at most 2.72 times as likely. A guess which of the two it is, by somebody who knows everything else, \
is right at most 74 times in 100.'
    """
    factor = "" if promise.epsilon is None else f": {_times(float(promise.epsilon))}"
    return (
        f"{factor}. A guess which of the two it is, by somebody who knows everything else, is right at most "
        f"{_in_hundred(best_guess(promise))} times in 100."
    )


def best_guess(promise: Promise) -> float:
    """How often a guess between two neighbouring datasets is right at most, if both are equally likely.

    Of ε and δ: the sum of both errors of a test is at least 2 (1 − δ)/(1 + e^ε). Of ρ: the divergence is at
    most ρ, so the total variation is at most √(ρ/2) (Pinsker) and √(1 − e^−ρ) (Bretagnolle and Huber).

    >>> round(best_guess(Promise.of(epsilon=1.0)), 3), round(best_guess(Promise.of(rho=0.1)), 3)
    (0.731, 0.612)
    """
    if promise.rho is not None:
        rho = float(promise.rho)
        return (1.0 + min(math.sqrt(rho / 2.0), math.sqrt(-math.expm1(-rho)))) / 2.0
    assert promise.epsilon is not None
    odds = math.exp(-float(promise.epsilon))
    return min(1.0, (1.0 + odds * float(promise.delta)) / (1.0 + odds))


def _times(epsilon: float) -> str:
    """e^ε with three digits, never rounded down, since it is a bound."""
    if epsilon >= math.log(_MOST_TIMES):
        return "a factor above a million"
    places = 2 - math.floor(math.log10(math.exp(epsilon)))
    rounded = math.ceil(math.exp(epsilon) * 10.0**places - _ROUNDING) / 10.0**places
    return f"at most {rounded:,.{max(places, 0)}f} times as likely"


def _in_hundred(probability: float) -> str:
    """A probability in whole percent, or with places where it is nearly certain; never rounded down."""
    for places in range(4):
        rounded = math.ceil(100.0 * probability * 10**places - _ROUNDING) / 10**places
        if rounded < 100:
            return f"{rounded:.{places}f}"
    return "100"


_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """What a release promises about every unit, whatever an attacker knows or later computes.

    ``unit`` is ``'record'``; ``'person'`` (with up to ``records_per_unit`` records each); or, of a graph,
    ``'adjacency row'``, ``'edge'`` or ``'directed edge'`` (in up to ``records_per_unit`` merged graphs).
    ``arithmetic`` states in which numbers the proof holds. ``secure`` is false when the noise came from a
    seed that may be known: such a release gives no protection. ``assumptions`` are what must be public
    knowledge for the claim to hold, such as ``'the list of classes is public'``; mostly none. ``trust`` is
    how several parties made the release; None if one holder of the data did. The rational numbers behind
    ``epsilon``, ``delta`` and ``rho`` are in ``promise``.

    Examples
    --------
    >>> promise = Promise.of(epsilon=0.1)
    >>> noise = Mechanism.of("discrete laplace")
    >>> Claim(promise, "record", 1, Relation.ADD_REMOVE, noise, "integers", True)
    Claim(epsilon=0.1, delta=0, unit='record', relation='add/remove', mechanism='discrete laplace', \
arithmetic='integers')
    """

    promise: Promise
    unit: str
    records_per_unit: int
    relation: Relation
    mechanism: Mechanism
    arithmetic: str
    secure: bool
    assumptions: tuple[str, ...] = ()
    trust: Trust | None = None

    @property
    def epsilon(self) -> float | None:
        """ε; None for a claim in ρ."""
        return None if self.promise.epsilon is None else float(self.promise.epsilon)

    @property
    def delta(self) -> float:
        """δ; 0 for pure ε, and for a claim in ρ, which has one for every ε."""
        return float(self.promise.delta)

    @property
    def rho(self) -> float | None:
        """ρ of zero-concentrated privacy; None for a claim in ε."""
        return None if self.promise.rho is None else float(self.promise.rho)

    def __repr__(self) -> str:
        shown_cap = self.unit == PERSON or self.records_per_unit > 1
        cap = f", records_per_unit={self.records_per_unit}" if shown_cap else ""
        mark = "" if self.secure else ", secure=False"
        mark += f", assumptions={self.assumptions!r}" if self.assumptions else ""
        mark += f", trust={self.trust!r}" if self.trust else ""
        return (
            f"Claim({self._numbers()}, unit={self.unit!r}{cap}, relation={str(self.relation)!r}, "
            f"mechanism={self.mechanism!r}, arithmetic={self.arithmetic!r}{mark})"
        )

    def _numbers(self) -> str:
        if self.rho is not None:
            return f"rho={self.rho!r}"
        return f"epsilon={self.epsilon!r}, delta={self.delta or 0}"

    def sentence(self) -> str:
        """The claim in plain words."""
        trusted = [] if self.trust is None else [self.trust.sentence()]
        assumed = (f"This assumes that {each}." for each in self.assumptions)
        return " ".join([self._promised(), *trusted, *assumed])

    def _promised(self) -> str:
        if not self.secure:
            return "No protection: the noise came from a seed, for tests only."
        who = f"one {unit_in_words(self.unit, self.records_per_unit)}"
        if self.unit == PERSON:
            who = f"one person (with up to {self.records_per_unit} records)"
        what = (
            "is in the data or is not" if self.relation is Relation.ADD_REMOVE else "is this one or another"
        )
        if self.rho is not None:
            promised = (
                f"{self.rho:.15g}-zero-concentrated differential privacy: it hides whether {who} {what}"
            )
        elif self.delta:
            promised = (
                "Whatever anyone knows or computes, the probability of any set of answers changes to at most "
                f"e^{self.epsilon:.15g} times itself plus {self.delta:.15g} because {who} {what}"
            )
        else:
            promised = (
                f"Whatever anyone knows or computes, no answer is more than e^{self.epsilon:.15g} times as "
                f"likely or unlikely because {who} {what}"
            )
        return f"{promised}{in_plain_words(self.promise)}"

    def _repr_html_(self) -> str:
        """The claim in words and numbers, for notebooks."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta} if self.rho is None else {"rho": self.rho}
        unit = unit_in_words(self.unit, self.records_per_unit)
        return _html.block(
            "Privacy claim",
            _html.paragraph(self.sentence()),
            _html.facts(
                [
                    *((name, f"{value:.15g}") for name, value in numbers.items() if value is not None),
                    ("unit", unit),
                    ("relation", str(self.relation)),
                    ("mechanism", str(self.mechanism)),
                    ("arithmetic", self.arithmetic),
                ]
            ),
        )

    def as_json(self) -> dict[str, Any]:
        """The claim for a file's header; rationals as strings, exactly; assumptions and trust where there
        are any.
        """
        assumed: dict[str, Any] = {"assumptions": list(self.assumptions)} if self.assumptions else {}
        if self.trust is not None:
            assumed["trust"] = self.trust.as_json()
        return {
            **assumed,
            "epsilon": None if self.promise.epsilon is None else str(self.promise.epsilon),
            "delta": str(self.promise.delta),
            "rho": None if self.promise.rho is None else str(self.promise.rho),
            "unit": self.unit,
            "records_per_unit": self.records_per_unit,
            "relation": str(self.relation),
            "mechanism": str(self.mechanism),
            "arithmetic": self.arithmetic,
            "secure": self.secure,
        }

    def in_numbers(self) -> dict[str, Any]:
        """The claim for a program that computes: numbers, the rationals behind them, and the sentence."""
        stored = self.as_json()
        names = ("epsilon", "delta", "rho")
        return {
            **stored,
            **{name: getattr(self, name) for name in names},
            "exact": {name: stored[name] for name in names},
            "sentence": self.sentence(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Claim:
        """The claim of a file's header; ValueError if it is none that could have been written."""
        epsilon, rho = (None if data[name] is None else _stored(data[name]) for name in ("epsilon", "rho"))
        claim = cls(
            promise=Promise.of(epsilon=epsilon, delta=_stored(data["delta"]) or None, rho=rho),
            unit=data["unit"],
            records_per_unit=data["records_per_unit"],
            relation=Relation.of(data["relation"]),
            mechanism=Mechanism.from_text(_text(data["mechanism"])),
            arithmetic=_text(data["arithmetic"]),
            secure=data["secure"],
            assumptions=_assumptions(data.get("assumptions", [])),
            trust=Trust.from_json(data["trust"]) if "trust" in data else None,
        )
        if (
            claim.unit not in UNITS
            or type(claim.secure) is not bool
            or type(claim.records_per_unit) is not int
        ):
            raise ValueError("unit")
        if claim.records_per_unit < 1:
            raise ValueError("unit")
        return claim


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text")
    return value


def _assumptions(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError("assumptions are stored as a list of strings")
    return tuple(value)


def _stored(text: object) -> Fraction:
    """A rational as a file spells it: a string, of a size that a float can show."""
    number = stored_rational(text)
    if number and not float(number):
        raise ValueError("too small")
    return number


def _positive(name: str, value: float | Fraction) -> Fraction:
    number = exact(name, value)
    if number <= 0:
        raise ClaimError(
            parameter=name, rule="must be above 0", got=f"{float(number):g}", remedy="1.0 is a common choice"
        )
    return number
