"""The messages of the protocol: public terms, the curator's broadcasts, the owners' answers.

Each has one spelling in bytes (``to_bytes``, ``from_bytes``), which a transport carries as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers
from hushsum.errors import FileRefused, UsageError
from hushsum.files.encoding import stored_rational
from hushsum.summarize.features import MAX_DIRECTION, SummaryFeatures
from hushsum.transport.serialization import check_spelling, pack, unpack

FRESH = "fresh"
THRESHOLD = "threshold"
AUCTION = "auction"
RULES = (THRESHOLD, FRESH, AUCTION)

SEND, BID, DELIVER = "send", "bid", "deliver"
PHASES = (SEND, BID, DELIVER)

CERTAIN = 1 << 16
"""The chance of a point that is sent for certain."""

MAX_ROUNDS = 1 << 16
MAX_OWNERS = 1 << 12
MAX_POINTS = 1 << 40


@dataclass(frozen=True, slots=True)
class RunTerms:
    """The public agreement of one run, known to all before the first round and never changed.

    ``rho`` is what every coalition of owners learns about one record of another owner over all rounds, in
    zero-concentrated privacy. ``size`` is how many points the summary has, ``reach`` how many the curator
    means to be sent under the threshold rule, ``batch`` the quota of an owner and round under the others,
    ``cap`` the most that one owner sends in all, ``rate`` the auction's log-odds a rank, ``extra`` the
    columns that go with a point. ``hashed``: owners send integers instead of points, and the features' seed
    is left out of the bytes.
    """

    run: str
    rule: str
    features: SummaryFeatures
    owners: tuple[str, ...]
    size: int
    rounds: int
    batch: int
    reach: int
    cap: int | None
    rho: Fraction | None
    rate: Fraction | None = None
    extra: int = 0
    hashed: bool = False

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise UsageError(
                parameter="rule",
                rule=f"must be one of {', '.join(RULES)}",
                got=f"{self.rule!r:.40}",
                remedy="take threshold",
            )
        whole = {"size": self.size, "rounds": self.rounds, "batch": self.batch, "reach": self.reach}
        for name, value in whole.items():
            if type(value) is not int or not 1 <= value <= MAX_POINTS:
                raise UsageError(
                    parameter=name,
                    rule=f"must be an integer from 1 to {MAX_POINTS}",
                    got=f"{value!r:.40}",
                    remedy="give one",
                )
        if self.rounds > MAX_ROUNDS or not 1 <= len(self.owners) <= MAX_OWNERS:
            raise UsageError(
                rule=f"a run has at most {MAX_ROUNDS} rounds and from 1 to {MAX_OWNERS} owners",
                got=f"{self.rounds} and {len(self.owners)}",
                remedy="use larger batches",
            )
        if len(set(self.owners)) != len(self.owners):
            raise UsageError(
                parameter="owners", rule="must have different names", got="one twice", remedy="rename it"
            )
        if self.cap is not None and (type(self.cap) is not int or not 1 <= self.cap <= MAX_POINTS):
            raise UsageError(
                parameter="cap",
                rule="must be an integer of at least 1",
                got=f"{self.cap!r:.40}",
                remedy="or give none",
            )

    def to_bytes(self) -> bytes:
        """The one spelling of these terms."""
        features = self.features.as_json()
        if self.hashed:
            features["seed"] = 0
        return pack(
            "terms",
            {
                "run": self.run,
                "rule": self.rule,
                "features": features,
                "owners": list(self.owners),
                "size": self.size,
                "rounds": self.rounds,
                "batch": self.batch,
                "reach": self.reach,
                "cap": self.cap,
                "rho": None if self.rho is None else str(self.rho),
                "rate": None if self.rate is None else str(self.rate),
                "extra": self.extra,
                "hashed": self.hashed,
            },
            {},
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> RunTerms:
        """The terms back; FileRefused if they are none."""
        _, values, _ = unpack(data, "terms")
        try:
            terms = cls(
                run=_text(values["run"]),
                rule=values["rule"],
                features=SummaryFeatures.from_json(values["features"]),
                owners=tuple(_text(name) for name in values["owners"]),
                size=values["size"],
                rounds=values["rounds"],
                batch=values["batch"],
                reach=values["reach"],
                cap=values["cap"],
                rho=None if values["rho"] is None else stored_rational(values["rho"]),
                rate=None if values["rate"] is None else stored_rational(values["rate"]),
                extra=_count(values["extra"]),
                hashed=bool(values["hashed"]),
            )
            check_spelling(terms, data)
            if any(each is not None and each <= 0 for each in (terms.rho, terms.rate)):
                raise ValueError("rho")
            return terms
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise FileRefused(
                rule="these terms are damaged or of a later version", remedy="get a fresh copy"
            ) from None


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast:
    """One message of the curator; the same for every owner, except ``requested`` in an auction.

    ``step`` counts messages from 1 without gaps. ``direction`` (int64, |·| ≤ 2³⁰) makes a point's gain:
    its hashes times the direction. In phase ``send`` every unsent point with a gain of at least ``threshold``
    is sent with probability ``chance``/65536 where a threshold is given, else the ``quota`` best are. In
    phase ``bid`` an owner names its best gain, in ``deliver`` it sends that point if ``requested``.
    """

    run: str
    step: int
    round: int
    phase: str
    direction: Integers
    threshold: int | None = None
    chance: int = CERTAIN
    quota: int = 0
    requested: bool = False

    def to_bytes(self) -> bytes:
        """The one spelling of this broadcast."""
        values = {
            "run": self.run,
            "step": self.step,
            "round": self.round,
            "phase": self.phase,
            "threshold": self.threshold,
            "chance": self.chance,
            "quota": self.quota,
            "requested": self.requested,
        }
        return pack("broadcast", values, {"direction": self.direction.astype(np.int64)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Broadcast:
        """The broadcast back; FileRefused if it is none."""
        _, values, arrays = unpack(data, "broadcast", most=1 << 20)
        try:
            threshold = values["threshold"]
            broadcast = cls(
                run=_text(values["run"]),
                step=_count(values["step"]),
                round=_count(values["round"]),
                phase=values["phase"],
                direction=arrays["direction"],
                threshold=None if threshold is None else _integer(threshold),
                chance=_count(values["chance"]),
                quota=_count(values["quota"]),
                requested=bool(values["requested"]),
            )
            check_spelling(broadcast, data)
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise _refused("broadcast") from None
        broadcast.check()
        return broadcast

    def check(self) -> None:
        """FileRefused unless every number is in its range."""
        direction = self.direction
        if (
            self.phase not in PHASES
            or not 0 <= self.chance <= CERTAIN
            or direction.ndim != 1
            or direction.dtype != np.int64
            or (direction.size and max(int(direction.max()), -int(direction.min())) > MAX_DIRECTION)
        ):
            raise _refused("broadcast")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer:
    """What one owner sends for one step; confidential between that owner and the curator.

    ``points`` has one row a point (float64, or integers of hashes), ``extra`` what goes with it, such as a
    label; ``bid`` is the best gain in the phase that requests it, None where nothing is left to offer.
    """

    run: str
    step: int
    owner: str
    points: Floats
    extra: Floats
    bid: int | None = None

    def __repr__(self) -> str:
        return f"<Answer CONFIDENTIAL owner={self.owner!r} step={self.step}>"

    def to_bytes(self) -> bytes:
        """The one spelling of this answer."""
        values = {"run": self.run, "step": self.step, "owner": self.owner, "bid": self.bid}
        return pack("answer", values, {"points": self.points, "extra": self.extra})

    @classmethod
    def from_bytes(cls, data: bytes, *, most: int | None = None) -> Answer:
        """The answer back, at most ``most`` bytes long; FileRefused if it is none, or holds a NaN."""
        _, values, arrays = unpack(data, "answer", most=most)
        try:
            answer = cls(
                run=_text(values["run"]),
                step=_count(values["step"]),
                owner=_text(values["owner"]),
                points=_matrix(arrays["points"]),
                extra=_matrix(arrays["extra"]),
                bid=None if values["bid"] is None else _integer(values["bid"]),
            )
            check_spelling(answer, data)
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise _refused("answer") from None
        if len(answer.points) != len(answer.extra):
            raise _refused("answer")
        return answer


def _refused(what: str) -> FileRefused:
    return FileRefused(
        rule=f"this {what} has a number outside its range or of the wrong shape", remedy="check the peer"
    )


def _text(value: Any) -> str:
    if type(value) is not str or not 0 < len(value) <= 200:
        raise ValueError("text")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int or abs(value) > 1 << 53:
        raise ValueError("integer")
    return value


def _count(value: Any) -> int:
    if _integer(value) < 0:
        raise ValueError("count")
    return int(value)


def _matrix(array: NDArray[Any]) -> Floats:
    if array.ndim != 2 or array.dtype != np.float64 or not math.isfinite(float(np.abs(array).sum())):
        raise ValueError("matrix")
    return array
