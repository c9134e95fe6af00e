"""Neighbouring datasets; promises (the privacy parameters of a release); claims (what it guarantees).

Mechanisms: the named algorithms that make releases private, which compose; and what is proven for each.

A ledger that accepted any name would add numbers that are not proven. So names are registered with the kinds
of promise that their proof gives, and everything else is refused.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from fractions import Fraction
from itertools import product
from typing import Any, Final

from hushsum import _html
from hushsum._types import is_number
from hushsum.errors import ClaimError, Parameter, UsageError, shown
from hushsum.files import stored_rational

__all__ = [
    "ADJACENCY_ROW", "DIRECTED_EDGE", "EDGE", "LARGE_EPSILON", "PERSON", "RECORD", "SECURE_AGGREGATION",
    "SITE_NOISE", "UNITS", "Claim", "Mechanism", "Promise", "Relation", "Trust", "best_guess",
    "check_mechanism", "checked_unit", "exact", "in_plain_words", "known_mechanisms", "unit_in_words",
]  # fmt: skip

SECURE_AGGREGATION: Final = "secure aggregation"
SITE_NOISE: Final = "site noise"
MOST_PARTIES: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Trust:
    """How the parties of a release made it, and against whom its claim holds.

    Without one, a single holder of the data drew the noise, and is trusted to have done so.

    Attributes
    ----------
    model : str
        ``"secure aggregation"``: sites added shares of noise inside a masked sum; ``"site noise"``: each
        site added noise of its own, and the results were added.
    parties : int
        How many sites there are.
    dropouts : int
        How many of them may have left before the sum was opened.
    colluding : int
        How many sites may use what they know, their share of noise included, alone or together with the
        server. With 0 sites of a secure aggregation the claim does not hold against the sites themselves.

    Examples
    --------
    >>> Trust(SECURE_AGGREGATION, 20, dropouts=4, colluding=2).honest
    14
    """

    model: str
    parties: int
    dropouts: int = 0
    colluding: int = 0

    def __post_init__(self) -> None:
        whole = (self.parties, self.dropouts, self.colluding)
        if self.model not in _SENTENCES or any(type(each) is not int for each in whole):
            raise ValueError("trust")
        if not 1 <= self.parties <= MOST_PARTIES or min(whole) < 0 or self.honest < 1:
            raise ValueError("parties")

    @property
    def honest(self) -> int:
        """How many parties certainly contribute noise that no adversary knows."""
        return self.parties - self.dropouts - self.colluding

    def sentence(self) -> str:
        """Against whom the claim holds, in plain words."""
        sites = f" and up to {self.colluding} of these sites, alone or together"
        others, least = sites if self.colluding else _NO_SITE, self.parties - self.dropouts
        return _SENTENCES[self.model].format(n=self.parties, others=others, least=least)

    def assumptions(self) -> tuple[str, ...]:
        """What the claim assumes of the parties."""
        if self.model == SECURE_AGGREGATION and not self.colluding:
            return ("no site uses its own share of the noise, which it knows",)
        return ()

    def as_json(self) -> dict[str, Any]:
        """The model for a file's header."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Trust:
        """The model of a file's header; ValueError or TypeError for none that could have been written."""
        if not isinstance(data, dict) or set(data) != {each.name for each in fields(cls)}:
            raise ValueError("trust")
        return cls(**data)


_NO_SITE: Final = ", and not against the sites themselves, each of which knows its own share of the noise"
_SENTENCES: Final = {
    SECURE_AGGREGATION: (
        "At least {least} of {n} sites added noise inside a sum that nobody sees without it; the claim holds "
        "against the server{others}."
    ),
    SITE_NOISE: (
        "Each of {n} sites added noise of its own before anything left it, and the results were added; the "
        "claim of a site's records rests on that site alone."
    ),
}


_AND = " + "
_OR = " or "


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What makes a release private: named mechanisms, several of which may run, or one of several.

    ``first + second`` runs both, one after the other or on different tables. ``first | second`` is one of the
    two, where a claim is made before it is known which; what is then drawn is one that the claim names.

    Attributes
    ----------
    alternatives : frozenset of tuples of str
        Each is a list of names that all run.

    Examples
    --------
    >>> choice, noise = Mechanism.of("permute and flip"), Mechanism.of("discrete laplace")
    >>> print(choice + noise)
    permute and flip + discrete laplace
    >>> print(noise | choice + noise)
    discrete laplace or permute and flip + discrete laplace
    >>> Mechanism.from_text(str(noise | choice + noise)) == noise | choice + noise
    True
    """

    alternatives: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, *names: str) -> Mechanism:
        """The mechanisms of these names, which all run; each is named once."""
        return cls(frozenset({tuple(dict.fromkeys(names))}))

    @classmethod
    def from_text(cls, text: str) -> Mechanism:
        """The mechanism whose text this is.

        Raises
        ------
        ValueError
            if no mechanism has this text.
        """
        found = cls(frozenset(tuple(dict.fromkeys(each.split(_AND))) for each in text.split(_OR)))
        if str(found) != text:
            raise ValueError("mechanism")
        return found

    def __add__(self, other: Mechanism) -> Mechanism:
        pairs = product(self.alternatives, other.alternatives)
        return Mechanism(frozenset(tuple(dict.fromkeys(first + second)) for first, second in pairs))

    def __or__(self, other: Mechanism) -> Mechanism:
        return Mechanism(self.alternatives | other.alternatives)

    def __contains__(self, drawn: Mechanism) -> bool:
        """Whether everything that the other mechanism may be is named here."""
        return drawn.alternatives <= self.alternatives

    def __str__(self) -> str:
        return _OR.join(sorted(_AND.join(each) for each in self.alternatives))

    def __repr__(self) -> str:
        return repr(str(self))

    @property
    def kinds(self) -> frozenset[PromiseKind]:
        """The kinds of promise proven for every alternative; KeyError if a name is not registered."""
        return frozenset.intersection(*map(_kinds, self.alternatives))


class PromiseKind(StrEnum):
    """What a promise is made of."""

    PURE = "pure epsilon"
    APPROXIMATE = "epsilon and delta"
    CONCENTRATED = "rho"

    @classmethod
    def of(cls, claim: Claim) -> PromiseKind:
        """The kind of a claim."""
        if claim.promise.rho is not None:
            return cls.CONCENTRATED
        return cls.PURE if claim.promise.pure else cls.APPROXIMATE


_KNOWN: dict[str, frozenset[PromiseKind]] = {}


def register_mechanism(name: str, *kinds: PromiseKind) -> Mechanism:
    """Make a mechanism known, with the kinds of promise that are proven for it.

    Raises
    ------
    ValueError
        if the name is known with other kinds: two proofs must not share a name.
    """
    if _AND in name or _OR in name:
        raise ValueError("a name of one mechanism")
    if _KNOWN.setdefault(name, frozenset(kinds)) != frozenset(kinds):
        raise ValueError(f"mechanism {name!r} is registered with other kinds")
    return Mechanism.of(name)


def known_mechanisms() -> list[str]:
    """The registered names, sorted.

    >>> "discrete laplace" in known_mechanisms()
    True
    """
    return sorted(_KNOWN)


def check_mechanism(claim: Claim) -> None:
    """Refuse a claim of a mechanism that is unknown, or of a kind that is not proven for it.

    Raises
    ------
    ClaimError
        in both cases.
    """
    try:
        kinds = claim.mechanism.kinds
    except KeyError:
        raise ClaimError(
            f"the claim's mechanism must be one of {', '.join(known_mechanisms())}",
            got=f"{claim.mechanism!r}",
            remedy="what it spends is not known, so it cannot be debited",
        ) from None
    if (kind := PromiseKind.of(claim)) not in kinds:
        rule = f"a claim of the mechanism {claim.mechanism!r} must be in {' or '.join(sorted(kinds))}"
        raise ClaimError(rule, got=kind, remedy="release with a mechanism that gives it")


def _kinds(names: tuple[str, ...]) -> frozenset[PromiseKind]:
    """The kinds proven for mechanisms that all run.

    Pure ε adds to (ε, δ) as it is, so steps of either kind give the latter.
    """
    steps = [_KNOWN[each] for each in names]
    proven = frozenset.intersection(*steps)
    either = {PromiseKind.PURE, PromiseKind.APPROXIMATE}
    if PromiseKind.PURE not in proven and all(kinds & either for kinds in steps):
        proven |= {PromiseKind.APPROXIMATE}
    return proven


register_mechanism("discrete laplace", PromiseKind.PURE)
register_mechanism("gamma radius", PromiseKind.PURE, PromiseKind.APPROXIMATE)
register_mechanism("discrete gaussian", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
# Moments of the loss, in `hushsum.privacy.accounting`.
register_mechanism("binomial", PromiseKind.APPROXIMATE)
# Moments of the loss, in `hushsum.privacy.accounting`.
register_mechanism("skellam", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
register_mechanism("factorised discrete gaussian", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
register_mechanism("interval sums discrete laplace", PromiseKind.PURE)
register_mechanism("exponential", PromiseKind.PURE)
register_mechanism("permute and flip", PromiseKind.PURE)
register_mechanism("random stopping", PromiseKind.PURE)
# Noise on a function, proven in `hushsum.privacy`; the last two in `hushsum.methods`.
register_mechanism("discrete gaussian on coefficients", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
register_mechanism("gaussian process path", PromiseKind.APPROXIMATE, PromiseKind.CONCENTRATED)
register_mechanism("gaussian process path, as-published", PromiseKind.APPROXIMATE)
register_mechanism("objective perturbation", PromiseKind.PURE)
register_mechanism("one posterior sample", PromiseKind.PURE, PromiseKind.APPROXIMATE)
# Gaussian noise on real numbers by the analytic formula: `ReleaseNoise.gaussian`.
register_mechanism("gaussian", PromiseKind.APPROXIMATE)
# Constants of Wang (2018), which spend less than they claim: `PublishedNoise.spent_delta`, checked before a
# debit in `hushsum.methods._linear_models`.
register_mechanism("gaussian, as-published", PromiseKind.APPROXIMATE)
# Answers that are each drawn afresh, composed over a number fixed beforehand, in
# `hushsum.secret_functions`.
register_mechanism("gaussian, fresh for each answer", PromiseKind.APPROXIMATE)
register_mechanism("laplace, fresh for each answer", PromiseKind.PURE, PromiseKind.APPROXIMATE)


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
            raise ClaimError("relation", "must be 'add/remove' or 'replace'", got=shown(value)) from None


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
        raise ClaimError(name, "must be a number", got=got, remedy="give a number such as 1.0")
    if isinstance(value, int | Fraction):
        return Fraction(value)
    number = float(value)
    if not math.isfinite(number):
        raise ClaimError(name, "must be finite", got=f"{number}", remedy="give a number such as 1.0")
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
            raise ClaimError("epsilon", ("or ", Parameter("rho"), " must be given, one of the two"), got=got)
        if rho is not None:
            if delta is not None:
                remedy = "give rho alone, or epsilon and delta"
                raise ClaimError("delta", "must not be given with rho", got="both", remedy=remedy)
            return cls(None, Fraction(0), _positive("rho", rho))
        assert epsilon is not None
        small = Fraction(0) if delta is None else exact("delta", delta)
        if not 0 <= small < 1:
            rule = "must be at least 0 and below 1"
            raise ClaimError("delta", rule, got=f"{float(small):g}", remedy="try 1e-6")
        number = _positive("epsilon", epsilon)
        if number < _SMALLEST_EPSILON:
            rule = f"must be at least {float(_SMALLEST_EPSILON):g}"
            raise ClaimError("epsilon", rule, got="less", remedy="1.0 is a common choice")
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

# Beyond that no noise could be drawn, and intermediate results of the accounting leave the floats.
_SMALLEST_EPSILON = Fraction(1, 10**15)

_NODE = "node"


def checked_unit(unit: str, allowed: Sequence[str] = UNITS) -> str:
    """Check that a unit is allowed, and return it.

    >>> checked_unit("edge")
    'edge'
    """
    if unit == _NODE:
        rule = "'node' is not offered: removing a node changes the rows of all its neighbours"
        raise ClaimError("unit", rule, remedy="claim 'adjacency row' or 'edge'")
    if unit not in allowed:
        *first, last = map(repr, allowed)
        choices = f"{', '.join(first)} or {last}" if first else last
        raise ClaimError("unit", f"must be {choices}", got=shown(unit))
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


# A larger factor has no meaning for people.
_MOST_TIMES = 1e6


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
        added = self.relation is Relation.ADD_REMOVE
        what = "is in the data or is not" if added else "is this one or another"
        if self.rho is not None:
            promised = f"{self.rho:.15g}-zero-concentrated differential privacy: it hides whether"
        elif self.delta:
            promised = (
                "Whatever anyone knows or computes, the probability of any set of answers changes to at most "
                f"e^{self.epsilon:.15g} times itself plus {self.delta:.15g} because"
            )
        else:
            promised = (
                f"Whatever anyone knows or computes, no answer is more than e^{self.epsilon:.15g} times as "
                "likely or unlikely because"
            )
        return f"{promised} {who} {what}{in_plain_words(self.promise)}"

    def _repr_html_(self) -> str:
        """The claim in words and numbers, for notebooks."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta} if self.rho is None else {"rho": self.rho}
        facts = [
            *((name, f"{value:.15g}") for name, value in numbers.items() if value is not None),
            ("unit", unit_in_words(self.unit, self.records_per_unit)),
            ("relation", str(self.relation)),
            ("mechanism", str(self.mechanism)),
            ("arithmetic", self.arithmetic),
        ]
        return _html.block("Privacy claim", _html.paragraph(self.sentence()), _html.facts(facts))

    def as_json(self) -> dict[str, Any]:
        """The claim for a file's header; rationals as strings, exactly; assumptions and trust where there
        are any.
        """
        assumed: dict[str, Any] = {"assumptions": list(self.assumptions)} if self.assumptions else {}
        if self.trust is not None:
            assumed["trust"] = self.trust.as_json()
        numbers = ((name, getattr(self.promise, name)) for name in _NUMBERS)
        return {
            **assumed,
            **{name: None if number is None else str(number) for name, number in numbers},
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
        return {
            **stored,
            **{name: getattr(self, name) for name in _NUMBERS},
            "exact": {name: stored[name] for name in _NUMBERS},
            "sentence": self.sentence(),
        }

    def as_dp_event(self) -> Any:
        """The worst mechanism that keeps the claim, as an event of ``dp_accounting``.

        Pure ε under add/remove is discrete Laplace noise on a count, and under replace randomized response of
        two values: each attains ε, and no mechanism with the same ε is easier to distinguish. ρ is an event
        that `dp_accounting.rdp` composes. Numbers are rounded to the side that claims less.

        Raises
        ------
        ClaimError
            if the claim is in ε and δ, for which ``dp_accounting`` has no event.
        UsageError
            if ``dp-accounting`` is not installed.
        """
        try:
            from dp_accounting import dp_event
        except ImportError:
            raise UsageError("an event needs dp-accounting", remedy="install hushsum[ledger]") from None
        from .accounting import float_above

        if not self.secure:
            return dp_event.NonPrivateDpEvent()
        if self.promise.rho is not None:
            return dp_event.ZCDpEvent(float_above(self.promise.rho))
        if not self.promise.pure or self.promise.epsilon is None:
            raise ClaimError(
                "a claim that becomes an event must be in pure epsilon or in rho",
                got="epsilon and delta",
                remedy="compose it with hushsum.privacy.accounting.compose, or release under rho",
            )
        epsilon = float_above(self.promise.epsilon)
        if self.relation is Relation.ADD_REMOVE:
            return dp_event.DiscreteLaplaceDpEvent(epsilon, 1)
        # With probability p a fair coin replaces the value: the odds of the two answers, (2 − p)/p, are e^ε.
        odds = math.exp(-epsilon)
        coin = 2.0 * odds / (1.0 + odds)
        return dp_event.RandomizedResponseDpEvent(coin * (1.0 - 4.0 * sys.float_info.epsilon), 2)

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
        counted = type(claim.records_per_unit) is int and claim.records_per_unit >= 1
        if claim.unit not in UNITS or type(claim.secure) is not bool or not counted:
            raise ValueError("unit")
        return claim


_NUMBERS = ("epsilon", "delta", "rho")


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
        raise ClaimError(name, "must be above 0", got=f"{float(number):g}", remedy="1.0 is a common choice")
    return number
