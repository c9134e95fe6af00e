"""The terms of a run, and the messages of each step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Final

from hushsum._types import Floats, Integers
from hushsum.errors import UsageError
from hushsum.kernels import one_of, positive_integer
from hushsum.parties._messages import (
    COUNT,
    FLAG,
    INTEGER,
    MATRIX,
    RATIONAL,
    TEXT,
    TEXT_OR_EMPTY,
    TEXTS,
    VECTOR,
    Field,
    Message,
    message_field,
)

from ._features import MAX_DIRECTION, PUBLIC_SEED, SummaryFeatures

FRESH = "fresh"
THRESHOLD = "threshold"
AUCTION = "auction"
RULES = (THRESHOLD, FRESH, AUCTION)

SEND, BID, DELIVER = "send", "bid", "deliver"
PHASES: Final = {THRESHOLD: (SEND,), FRESH: (SEND,), AUCTION: (BID, DELIVER)}
"""The phases of a round, by rule: each is one broadcast and its answers."""

CERTAIN = 1 << 16
"""The ``chance`` of a point that is sent for certain."""

MAX_ROUNDS = 1 << 16
MAX_OWNERS = 1 << 12
MAX_POINTS = 1 << 40
MOST_BROADCAST: Final = 1 << 20
MOST_OPENING: Final = 1 << 22
_ROOM: Final = 1 << 12

FEATURES: Final = Field(SummaryFeatures.from_json, SummaryFeatures.as_json)


@dataclass(frozen=True, slots=True)
class RunTerms(Message):
    """The public agreement of one run, known to all before the first round and never changed.

    ``rho`` is what every coalition of owners learns about one record of another owner over all rounds, in
    zero-concentrated privacy. ``size`` is how many points the summary has, ``reach`` how many the curator
    means to be sent under the threshold rule, ``batch`` the quota of an owner and round under the others,
    ``cap`` the most that one owner sends in all, ``rate`` the auction's log-odds a rank, ``extra`` the
    columns that go with a point. ``hashed``: owners send integers instead of points, and the features here
    have `PUBLIC_SEED` in place of the secret one.
    """

    kind: ClassVar[str] = "terms"
    damaged: ClassVar[str] = "these terms are damaged or of a later version"

    run: Annotated[str, TEXT]
    rule: Annotated[str, TEXT]
    features: Annotated[SummaryFeatures, FEATURES]
    owners: Annotated[tuple[str, ...], TEXTS]
    size: Annotated[int, COUNT]
    rounds: Annotated[int, COUNT]
    batch: Annotated[int, COUNT]
    reach: Annotated[int, COUNT]
    cap: Annotated[int | None, COUNT.optional()]
    rho: Annotated[Fraction | None, RATIONAL.optional()]
    rate: Annotated[Fraction | None, RATIONAL.optional()] = None
    extra: Annotated[int, COUNT] = 0
    hashed: Annotated[bool, FLAG] = False

    def __post_init__(self) -> None:
        one_of("rule", self.rule, RULES)
        if self.hashed:
            object.__setattr__(self, "features", replace(self.features, seed=PUBLIC_SEED))
        for name in ("size", "rounds", "batch", "reach", "cap"):
            value = getattr(self, name)
            if value is not None or name != "cap":
                object.__setattr__(self, name, positive_integer(name, value, at_most=MAX_POINTS))
        if self.rounds > MAX_ROUNDS or not 1 <= len(self.owners) <= MAX_OWNERS:
            raise UsageError(
                f"a run has at most {MAX_ROUNDS} rounds and from 1 to {MAX_OWNERS} owners",
                got=f"{self.rounds} and {len(self.owners)}",
            )
        if len(set(self.owners)) != len(self.owners):
            raise UsageError("owners", "must have different names", got="one twice")

    def check(self) -> None:
        """ValueError for a promise of nothing."""
        if any(each is not None and each <= 0 for each in (self.rho, self.rate)):
            raise ValueError("rho")

    @property
    def most_answer(self) -> int:
        """The longest answer, in bytes.

        An owner sends its cap at most; without one far more than a summary has, and not without end.
        """
        width = self.features.width if self.hashed else self.features.dim
        points = 16 * self.size + 4096 if self.cap is None else self.cap
        return points * (width + self.extra) * 8 + _ROOM


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast(Message):
    """One message of the curator; the same for every owner, except ``requested`` in an auction.

    ``step`` counts messages from 1 without gaps. ``direction`` (int64, |·| ≤ 2³⁰) makes a point's gain:
    its hashes times the direction. In phase ``send`` every unsent point with a gain of at least ``threshold``
    is sent with probability ``chance``/65536 where a threshold is given, else the ``quota`` best are. In
    phase ``bid`` an owner names its best gain, in ``deliver`` it sends that point if ``requested``.
    """

    kind: ClassVar[str] = "broadcast"
    most: ClassVar[int | None] = MOST_BROADCAST

    run: Annotated[str, TEXT]
    step: Annotated[int, COUNT]
    round: Annotated[int, COUNT]
    phase: Annotated[str, TEXT]
    direction: Annotated[Integers, VECTOR]
    threshold: Annotated[int | None, INTEGER.optional()] = None
    chance: Annotated[int, COUNT] = CERTAIN
    quota: Annotated[int, COUNT] = 0
    requested: Annotated[bool, FLAG] = False

    def check(self) -> None:
        """ValueError unless every number is in its range."""
        direction = self.direction
        if self.phase not in (SEND, BID, DELIVER) or not 0 <= self.chance <= CERTAIN:
            raise ValueError("phase")
        if direction.size and max(int(direction.max()), -int(direction.min())) > MAX_DIRECTION:
            raise ValueError("direction")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer(Message):
    """What one owner sends for one step; confidential between that owner and the curator.

    ``points`` has one row a point (float64, or integers of hashes), ``extra`` what goes with it, such as a
    label; ``bid`` is the best gain in the phase that requests it, None where nothing is left to offer.
    """

    kind: ClassVar[str] = "answer"

    run: Annotated[str, TEXT]
    step: Annotated[int, COUNT]
    owner: Annotated[str, TEXT]
    points: Annotated[Floats, MATRIX]
    extra: Annotated[Floats, MATRIX]
    bid: Annotated[int | None, INTEGER.optional()] = None

    def __repr__(self) -> str:
        return f"<Answer CONFIDENTIAL owner={self.owner!r} step={self.step}>"

    def check(self) -> None:
        """ValueError unless every point has its extra columns."""
        if len(self.points) != len(self.extra):
            raise ValueError("rows")


@dataclass(frozen=True, slots=True)
class Opening(Message):
    """The first message: the public terms, and which columns are compared and which only carried along.

    Names of columns come from the curator. An owner compares them with what it allows, and reveals nothing
    about its own. ``secret_check`` is that of the hash secret, where hashes are sent.
    """

    kind: ClassVar[str] = "opening"
    most: ClassVar[int | None] = MOST_OPENING
    damaged: ClassVar[str] = "the opening of this run is damaged or of a later version"

    terms: Annotated[RunTerms, message_field(RunTerms)]
    compared: Annotated[tuple[str, ...], TEXTS]
    carried: Annotated[tuple[str, ...], TEXTS] = ()
    secret_check: Annotated[str, TEXT_OR_EMPTY] = ""

    def check(self) -> None:
        """ValueError for columns without a name of their own, and a check without hashes."""
        names = self.compared + self.carried
        if not self.compared or len(set(names)) != len(names):
            raise ValueError("names")
        if bool(self.secret_check) != self.terms.hashed:
            raise ValueError("check")
