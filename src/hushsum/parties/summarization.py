"""Private summarization: owners send a curator the points that resemble a consumer's validation set.

What owners learn of each other's records is differentially private over all rounds. The two sides are state
machines without input or output, `CuratorState` and `OwnerState`, which a transport drives; `summarize` runs
both in one process; `collect_summary` and `offer_records` run them between processes, with files, keys, state
folders and ledgers. The messages are ``curator: Opening → owner: ready``, then for each step
``Broadcast → Answer``.

The curator knows the validation set by a noisy release (`NoisyTarget`). It broadcasts, adds up the answers,
and releases their sums with noise that is fresh in each round, or factored over all rounds (`NoisySums`). In
the end it chooses the summary greedily among the points that it received (`greedy_choice`).
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushsum import _native
from hushsum._types import Floats, Integers
from hushsum.declaration import Parameter, check_fields, picked, request, required, setting
from hushsum.errors import (
    AlreadyPublished,
    Argument,
    BudgetExhausted,
    ClaimError,
    DataRefused,
    FileRefused,
    HushsumError,
    PeerLost,
    PeerRefused,
    UsageError,
)
from hushsum.errors import Parameter as NameOf
from hushsum.files import Stored, atomic_file, pack, unpack
from hushsum.kernels import GaussianKernel, one_of, positive_integer, row_words, uniforms
from hushsum.operations import LedgerOptions, check_output, release_key
from hushsum.privacy import (
    Booking,
    Claim,
    Mechanism,
    Promise,
    Relation,
    StagedRelease,
    another_release,
    exact,
    flip_coins,
    random_places,
    release_noise,
    root_coefficients,
    spend,
    stage,
)
from hushsum.privacy.accounting import zcdp_delta, zcdp_epsilon, zcdp_rho
from hushsum.records import PLAIN, CellFormat, ColumnBlocks, pyarrow, read_columns
from hushsum.tables import AMPLITUDE, LENGTH

from ._runtime import (
    MOST_CONTROL,
    NO_LEDGER,
    SIGNED,
    TEXT_OR_EMPTY,
    Address,
    Coordinator,
    Field,
    Log,
    Message,
    Participant,
    PartySpec,
    Patience,
    Result,
    RunSpending,
    StateFolder,
    control,
    control_in,
    listener,
    own_affairs,
)
from ._tls import Identity, fingerprint_of, read_secret, short, write_secret

_ROWS_AT_A_TIME = 2048
PUBLIC_SEED = 0
"""What stands in for a secret seed wherever the curator can read."""

MAX_WIDTH = 4096
"""With more coordinates a gain would not be an exact integer in double precision."""

Hashes = NDArray[np.int16]


@dataclass(frozen=True)
class SummaryFeatures(Stored):
    """Fourier features of ``exp(−‖x − y‖²/(2·bandwidth²))``, rounded to integers.

    A record's integers depend on that record alone, bit for bit, so a sum of them is exact and discrete
    Gaussian noise on it keeps its claim. ``unit`` times the integers is the real feature vector φ, with
    φ(x)·φ(y) ≈ k(x, y).

    Parameters
    ----------
    dim : int
        Columns of a record.
    bandwidth : float
        The kernel's standard deviation; the paper's γ is ``1/(2·bandwidth²)``.
    features : int
        m, the frequencies.
    seed : int
        Public, except in the mode that hides points from the curator.
    paired : bool
        True: cosine and sine of every frequency, of norm 1. False: ``√(2/m)·cos(ω·x + b)`` as published
        (h1), of norm up to √2, which costs √2 more noise.

    Privacy
    -------
    ‖integers‖² ≤ m·1024²: every frequency adds a pair, or a cosine alone, that is no longer than 1024 (see
    `hushsum.tables.FourierFeatures`).

    Examples
    --------
    >>> features = SummaryFeatures(dim=2, bandwidth=1.0, features=200, seed=1)
    >>> hashes = features.hashes([[0.0, 0.0], [1.0, 0.0]])
    >>> hashes.shape, bool((hashes.astype(int) ** 2).sum(axis=1).max() <= features.length_squared)
    ((2, 400), True)

    Notes
    -----
    Rahimi and Recht, *Random features for large-scale kernel machines*, NIPS 2007.
    """

    dim: int
    bandwidth: float
    features: int
    seed: int
    paired: bool = True

    def __post_init__(self) -> None:
        kernel = GaussianKernel(dim=self.dim, bandwidth=self.bandwidth)
        object.__setattr__(self, "dim", kernel.dim)
        object.__setattr__(self, "bandwidth", kernel.bandwidth)
        most = MAX_WIDTH // 2 if self.paired else MAX_WIDTH
        object.__setattr__(self, "features", positive_integer("features", self.features, at_most=most))
        if isinstance(self.seed, bool) or not hasattr(self.seed, "__index__"):
            raise UsageError("seed", "must be an integer", got=type(self.seed).__name__)

    @property
    def kernel(self) -> GaussianKernel:
        """The kernel that the features approximate."""
        return GaussianKernel(dim=self.dim, bandwidth=self.bandwidth)

    @property
    def width(self) -> int:
        """Coordinates of a feature vector."""
        return 2 * self.features if self.paired else self.features

    @property
    def length_squared(self) -> int:
        """The most that the squared integers of one record add up to."""
        return int(self.features * LENGTH**2)

    @property
    def unit(self) -> float:
        """What one integer step is in the real feature vector."""
        return math.sqrt((1.0 if self.paired else 2.0) / self.features) / float(AMPLITUDE)

    def hashes(self, records: ArrayLike) -> Hashes:
        """The integers of each record, shape (records, width); a record's depend on that record alone.

        Raises
        ------
        DataRefused
            wrong columns, or a number that is not finite.
        """
        rows = self.kernel.prepare(records).arrays[0]
        result = np.empty((len(rows), self.width), np.int16)
        for first in range(0, len(rows), _ROWS_AT_A_TIME):
            result[first : first + _ROWS_AT_A_TIME] = self._integers(rows[first : first + _ROWS_AT_A_TIME])
        return result

    def _integers(self, rows: NDArray[np.float32]) -> NDArray[Any]:
        if self.paired:
            return self._map.integers(rows).reshape(len(rows), self.width)
        shifted = np.concatenate([rows, np.ones((len(rows), 1), np.float32)], axis=1)
        return self._map.integers(shifted)[:, :, 0]

    @cached_property
    def _map(self) -> _native.FeatureMap:
        frequencies = self.kernel.frequencies(rows=self.features, seed=self.seed, orthogonal=self.paired)
        if self.paired:
            return _native.FeatureMap(frequencies)
        phases = uniforms(row_words("summary/phases", self.seed, self.features, 1))
        return _native.FeatureMap(np.concatenate([frequencies, phases.astype(np.float32)], axis=1))


def scores(hashes: Hashes, direction: Integers) -> Integers:
    """hashes · direction, exactly, whatever the number of rows.

    Every partial sum is an integer below 2⁵³, so that double precision adds without rounding in any order:
    a record's score depends on that record alone.
    """
    result = np.empty(len(hashes), np.int64)
    weights = direction.astype(np.float64)
    for first in range(0, len(hashes), 2048):
        part = hashes[first : first + 2048].astype(np.float64)
        result[first : first + 2048] = (part @ weights).astype(np.int64)
    return result


def best_first(gains: Integers, hashes: Hashes, most: int) -> Integers:
    """The places of the ``most`` best gains, best first; equal gains in the order of their hashes' bytes.

    So the order is one of the points themselves: one record more leaves that of the others as it was,
    which party ranks them. Points with equal hashes count the same in every sum.

    >>> best_first(np.array([5, 9, 5]), np.array([[2], [0], [1]], np.int16), 3).tolist()
    [1, 2, 0]
    """
    order = np.argsort(-gains, kind="stable")
    last = min(most, len(order))
    if last < len(order):
        # Everything that ties with the last one in competes for its place.
        last += int((gains[order[last:]] == gains[order[last - 1]]).sum()) if last else 0
    order = order[:last]
    ranked = gains[order]
    if last > 1 and (ranked[1:] == ranked[:-1]).any():
        order = np.array(sorted(order, key=lambda i: (-int(gains[i]), hashes[i].tobytes())), np.int64)
    return order[:most].astype(np.int64)


MAX_DIRECTION = 1 << 30
"""|direction| ≤ 2³⁰, |hash| ≤ 2¹⁰ and at most 2¹² coordinates: sums stay within 2⁵²."""

MAX_GAIN = 1 << 52
"""No gain is beyond it."""


MAKER: Final = "hushsum summarize secret"
_FORM: Final = re.compile(rb"hushsum hash secret 1\n([0-9a-f]{64})\n")


@dataclass(frozen=True, slots=True, repr=False)
class HashSecret:
    """32 random bytes from which the features' seed follows; the curator must never have them.

    One owner makes it and hands it to the other owners and the consumer. Take a new one for every run: under
    one secret equal points have equal hashes in all runs.

    Privacy
    -------
    The seed has 256 bits, so it cannot be guessed by trying. It hides coordinates and nothing else: pairwise
    distances of what is sent show, and anyone who has the secret can solve for the points. No claim is made.

    Examples
    --------
    >>> secret = HashSecret(bytes(32))
    >>> features = secret.features(SummaryFeatures(dim=2, bandwidth=1.0, features=50, seed=0))
    >>> features.seed == secret.seed, secret
    (True, <HashSecret f284027b3135…>)
    """

    _bytes: bytes

    def __repr__(self) -> str:
        return f"<HashSecret {self.check[:12]}…>"

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> HashSecret:
        """Draw one and write it to a new file of mode 0600; UsageError if the file exists."""
        made = cls(secrets.token_bytes(32))
        write_secret(path, b"hushsum hash secret 1\n" + made._bytes.hex().encode() + b"\n")
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> HashSecret:
        """Read a secret file.

        Raises
        ------
        UsageError
            if there is none, or other users of the machine can read it.
        FileRefused
            if it holds something else.
        """
        found = _FORM.fullmatch(read_secret(path, maker=MAKER))
        if found is None:
            raise FileRefused(f"{os.fspath(path)!r} holds no hash secret", remedy=f"make one with: {MAKER}")
        return cls(bytes.fromhex(found[1].decode()))

    @property
    def seed(self) -> int:
        """The features' seed, 256 bits."""
        return int.from_bytes(self._digest("seed"), "big")

    @property
    def check(self) -> str:
        """A public digest by which parties check that they hold the same secret.

        It reveals nothing about the secret.
        """
        return self._digest("check").hex()

    def features(self, public: SummaryFeatures) -> SummaryFeatures:
        """The features of the terms under this secret's seed."""
        return replace(public, seed=self.seed)

    def _digest(self, purpose: str) -> bytes:
        return hashlib.sha256(f"hushsum/summary-hashes/{purpose}/".encode() + self._bytes).digest()


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

    run: str
    rule: str
    features: Annotated[SummaryFeatures, FEATURES]
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

    run: str
    step: int
    round: int
    phase: str
    direction: Integers
    threshold: Annotated[int | None, SIGNED] = None
    chance: int = CERTAIN
    quota: int = 0
    requested: bool = False

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

    run: str
    step: int
    owner: str
    points: Floats
    extra: Floats
    bid: Annotated[int | None, SIGNED] = None

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

    terms: RunTerms
    compared: tuple[str, ...]
    carried: tuple[str, ...] = ()
    secret_check: Annotated[str, TEXT_OR_EMPTY] = ""

    def check(self) -> None:
        """ValueError for columns without a name of their own, and a check without hashes."""
        names = self.compared + self.carried
        if not self.compared or len(set(names)) != len(names):
            raise ValueError("names")
        if bool(self.secret_check) != self.terms.hashed:
            raise ValueError("check")


FRACTION_BITS = 12


def factored_coefficients(releases: int) -> Integers:
    """The coefficients of the square-root factorisation: integers next to 2¹²·binom(2k, k)/4^k.

    The standard deviation of the estimate is about (1 + ln(n)/π)·Δ/√(2ρ) after n releases; fresh releases
    would cost √n.

    Notes
    -----
    Fichtenberger, Henzinger and Upadhyay, *Constant matters*, ICML 2023.
    """
    return np.rint(root_coefficients(releases) * (1 << FRACTION_BITS)).astype(np.int64)


class NoisySums:
    """Prefix sums of a stream by a factorisation A = B·C of the all-ones triangle.

    Release t outputs Σ_s c_{t−s}·z_s plus discrete Gaussian noise; ``coefficients`` are the integers c_k, one
    for each release. The estimate of the prefix sum is a fixed linear combination of the outputs. With
    `factored_coefficients` the noise of all outputs is shared. With ones every output is the sum so far with
    fresh noise, and the last one is the estimate.

    Privacy
    -------
    *Fresh releases.* If the sums of neighbours differ by at most Δ at every release, given equal earlier
    releases, then r releases are r·Δ²/(2·variance)-zCDP.

    *Factored releases.* Let one record change the increment of one release only, by a vector of length at
    most Δ, where which release may depend on earlier outputs. Given equal earlier outputs, output t differs
    by c_{t−s}·Δ, and Σ_t c_{t−s}² ≤ Σ_k c_k² on every path. So all outputs together are
    Σc²·Δ²/(2·variance)-zCDP, adaptively (Rényi filters, Feldman and Zrnic 2021; for matrices, Denisov et al.
    2022). Two changed increments have length at most 2Δ·√(Σc²): four times that.
    """

    def __init__(self, width: int, coefficients: Integers, variance: Fraction) -> None:
        self.coefficients, self.variance = coefficients, variance
        self.increments: Integers = np.zeros((0, width), np.int64)
        """What has been added; secret."""

    @cached_property
    def _weights(self) -> Floats:
        """The series of 1/((1 − x)·c(x)), by which outputs become prefix sums."""
        c = self.coefficients.astype(np.float64)
        inverse = np.zeros(len(c))
        inverse[0] = 1.0 / c[0]
        for k in range(1, len(c)):
            inverse[k] = -np.dot(c[1 : k + 1], inverse[k - 1 :: -1]) / c[0]
        return np.cumsum(inverse)

    def release(self, increment: Integers, *, insecure_noise_seed: int | None = None) -> Integers:
        """Add an increment and release the next output."""
        self.increments = np.concatenate([self.increments, increment[None]])
        c = self.coefficients[: len(self.increments)]
        with release_noise(insecure_noise_seed) as noise:
            return noise.integer_gaussian(c[::-1] @ self.increments, self.variance)

    def deviation(self, releases: int) -> float:
        """The standard deviation of one coordinate of the estimate after that many releases."""
        return float((float(self.variance) * (self._weights[:releases] ** 2).sum()) ** 0.5)

    def estimate(self, outputs: Integers) -> Floats:
        """The sum so far, from all outputs, shape (releases, width)."""
        weights = self._weights[: len(outputs)][::-1]
        result: Floats = weights @ outputs.astype(np.float64)
        return result


COUNT_WEIGHT = 0.5
"""A record adds its features, of norm 1, and this much to a cell that counts."""


def count_step(features: SummaryFeatures) -> int:
    """What one record adds to the counting cell, in integer steps."""
    return max(1, round(COUNT_WEIGHT * AMPLITUDE * math.sqrt(features.features)))


def record_squared(features: SummaryFeatures) -> int:
    """The squared length of what one record adds: features and count."""
    return features.length_squared + count_step(features) ** 2


def coefficients_of(terms: RunTerms) -> Integers:
    """The coefficients of the running sum, which is released before every round but the first, when it is
    empty.
    """
    releases = max(terms.rounds - 1, 1)
    return factored_coefficients(releases) if terms.rule == THRESHOLD else np.ones(releases, np.int64)


def sum_squared(terms: RunTerms) -> int:
    """Δ² of all releases of the running sum together.

    Threshold: one record changes one increment, and with a cap a second one: four times. Fresh, and the
    auction: the sums differ by one point for another, in every release.
    """
    changed = 4 * terms.features.length_squared
    if terms.rule == THRESHOLD:
        changed = (1 if terms.cap is None else 4) * record_squared(terms.features)
    return changed * int((coefficients_of(terms) ** 2).sum())


def answers_rho(terms: RunTerms) -> Fraction:
    """What the auction's answers tell all other owners together: (K − 1)·rate²/8 a round.

    One record moves one owner's rank, and each other owner by one rank at most; a coin whose log-odds move
    by ``rate`` is rate²/8-zCDP, since the second derivative of log(1 + eˣ) is at most 1/4.
    """
    if terms.rule != AUCTION or terms.rate is None:
        return Fraction(0)
    return terms.rounds * (len(terms.owners) - 1) * terms.rate**2 / 8


def sum_variance(terms: RunTerms) -> Fraction:
    """The variance of the discrete Gaussian noise on the running sum.

    Raises
    ------
    ClaimError
        if the answers alone spend what was promised.
    """
    if terms.rho is None:
        raise ClaimError(f"the rule {terms.rule} keeps no promise", remedy=f"take {THRESHOLD} or {FRESH}")
    left = terms.rho - answers_rho(terms)
    if left <= 0:
        raise ClaimError(
            "rate",
            f"must leave something of rho = {float(terms.rho):g} for the sums",
            remedy="take a smaller rate",
        )
    return Fraction(sum_squared(terms)) / (2 * left)


def target_variance(features: SummaryFeatures, rho: Fraction) -> Fraction:
    """The variance of the noise on the validation set's sum and count."""
    return Fraction(record_squared(features)) / (2 * rho)


_AHEAD = 32
_SHORTLIST = 2048

_Singles = NDArray[np.float32]


@dataclass(slots=True, eq=False)
class _Candidates:
    """Points that may be taken, one entry each.

    ``attraction`` is the product with the target's mean; ``crowding`` is what a point loses by lying near
    those already taken, and half of its own norm.
    """

    features: _Singles
    attraction: _Singles
    crowding: _Singles
    free: NDArray[np.bool_]

    def gains(self, number: int) -> _Singles:
        """What each would add as the choice of this number."""
        return np.where(self.free, self.attraction - self.crowding / np.float32(number), -np.inf)

    def take_best(self, number: int) -> int:
        """Take the best one as the choice of this number."""
        best = int(np.argmax(self.gains(number)))
        self.free[best] = False
        self.crowding += self.features @ self.features[best]
        return best

    def part(self, places: Integers) -> _Candidates:
        """Some of them, to try choices on."""
        return _Candidates(
            self.features[places], self.attraction[places], self.crowding[places], self.free[places]
        )


def greedy_choice(hashes: Hashes, target: Floats, size: int, *, unit: float) -> Integers:
    """The places of ``size`` points, in the order in which greedy maximisation of J takes them.

    ``target`` is the validation set's mean in integer features. Gains follow each choice by the products with
    the new point's features, O(n·width), never from the whole summary. For speed a few choices are made from
    a shortlist and then checked against all points by one matrix product: the first that another point would
    have won, and what follows it, is taken back. So the result is greedy's own, up to rounding in ties.

    Notes
    -----
    Kim, Khanna and Koyejo, *Examples are not enough, learn to criticize!*, NIPS 2016.
    """
    features: _Singles = hashes.astype(np.float32) * np.float32(unit)
    points = _Candidates(
        features,
        features @ (target * unit).astype(np.float32),
        0.5 * np.einsum("ij,ij->i", features, features),
        np.ones(len(features), np.bool_),
    )
    chosen: list[int] = []
    size = min(size, len(features))
    plain = 0
    while len(chosen) < size:
        number = len(chosen) + 1
        if plain:
            plain -= 1
            chosen.append(points.take_best(number))
            continue
        listed = _best(points.gains(number), _SHORTLIST)
        ahead = min(_AHEAD, size - len(chosen), len(listed), int(points.free.sum()))
        shortlist = points.part(listed)
        picks = listed[[shortlist.take_best(number + after) for after in range(ahead)]]
        near = features @ features[picks].T
        right = _undisputed(near, points, picks, number)
        chosen.extend(picks[:right].tolist())
        points.free[picks[:right]] = False
        points.crowding += near[:, :right].sum(axis=1)
        # Where most were taken back, it is quicker to go one by one for a while.
        plain = _AHEAD * 4 if right < ahead // 4 else 0
    return np.array(chosen, np.int64)


def _best(gains: _Singles, most: int) -> Integers:
    """The places of the best gains, in their own order, so that ties go to the first place."""
    if len(gains) <= most:
        return np.arange(len(gains))
    return np.sort(np.argpartition(-gains, most)[:most]).astype(np.int64)


def _undisputed(near: _Singles, points: _Candidates, picks: Integers, number: int) -> int:
    """How many of the picks, from the first, no other point would have won; at least one."""
    left = replace(points, crowding=points.crowding.copy(), free=points.free.copy())
    for after, pick in enumerate(picks):
        gains = left.gains(number + after)
        # The same product in two shapes may differ in its last bits.
        if after and gains.max() > gains[pick] + 1e-7:
            return after
        left.free[pick] = False
        left.crowding += near[:, after]
    return len(picks)


_LARGEST_STEP = 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTarget(Message):
    """The validation set as every owner may see it; public.

    ``cells`` holds the noisy feature sums and, last, the noisy count times its weight.

    Privacy
    -------
    ``rho``-zCDP for one record of the validation set present or absent: it adds a vector of length at most
    √(m·1024² + step²), and the noise is discrete Gaussian of that length squared over 2ρ.
    """

    kind: ClassVar[str] = "target"
    damaged: ClassVar[str] = "this validation release is damaged"

    cells: Integers
    step: int
    variance: Fraction
    rho: Fraction
    secure: bool = True

    @property
    def count(self) -> float:
        """The noisy number of records, at least 1."""
        return max(float(self.cells[-1]) / self.step, 1.0)

    def mean(self) -> Floats:
        """The noisy mean of the integer features."""
        result: Floats = self.cells[:-1].astype(np.float64) / self.count
        return result

    @property
    def mean_variance(self) -> float:
        """The variance of the noise in one coordinate of the mean."""
        return float(self.variance) / self.count**2

    def check(self) -> None:
        """ValueError unless a mean can be computed from it."""
        if self.cells.size < 2:
            raise ValueError("cells")
        if not 1 <= self.step <= _LARGEST_STEP or self.rho <= 0 or not 0 < float(self.variance) < 1e100:
            raise ValueError("numbers")


def release_target(
    features: SummaryFeatures,
    validation: ArrayLike,
    rho: float | Fraction,
    *,
    insecure_noise_seed: int | None = None,
) -> NoisyTarget:
    """Release a validation set; the consumer does this once and hands the result to the curator.

    Raises
    ------
    ClaimError
        rho is not above 0.
    """
    spent = Fraction(rho)
    if spent <= 0:
        raise ClaimError("rho", "must be above 0", got=f"{float(spent):g}")
    hashes = features.hashes(validation)
    step = count_step(features)
    cells = np.append(hashes.sum(axis=0, dtype=np.int64), len(hashes) * step)
    variance = target_variance(features, spent)
    with release_noise(insecure_noise_seed) as noise:
        noisy = noise.integer_gaussian(cells, variance)
    return NoisyTarget(noisy, step, variance, spent, secure=insecure_noise_seed is None)


_PUBLIC_FEATURES: Final = Field(FEATURES.read, lambda features: replace(features, seed=PUBLIC_SEED).as_json())


@dataclass(frozen=True, slots=True, eq=False)
class HashedTarget(Message):
    """A `NoisyTarget` under a secret seed, with what the curator needs to agree on terms.

    ``features`` have `PUBLIC_SEED`; ``columns`` are the names that were hashed, in order;
    ``secret_check`` is the secret's, by which owners see that they hold the same one.
    """

    kind: ClassVar[str] = "hashed validation release"
    damaged: ClassVar[str] = NoisyTarget.damaged

    features: Annotated[SummaryFeatures, _PUBLIC_FEATURES]
    columns: tuple[str, ...]
    secret_check: str
    target: NoisyTarget

    def check(self) -> None:
        """FileRefused unless its noise is that of its promise."""
        if not self.columns:
            raise ValueError("names")
        features, target = self.features, self.target
        if (target.step, target.cells.size) != (count_step(features), features.width + 1):
            raise FileRefused("this validation release does not have the features that it states")
        if target.variance != target_variance(features, target.rho):
            raise FileRefused("this validation release has other noise than its promise needs")


Store = Callable[[bytes], None]


class CuratorState:
    """The curator's state in one run, without sockets.

    ::

        while not curator.done:
            curator.advance()                                  # draws once, then stores
            for owner, broadcast in curator.outgoing().items():
                curator.take(send(owner, broadcast))           # or curator.lose(owner)
        summary_of(curator)

    `advance` draws the next broadcasts and hands the whole state to ``store`` before anyone can see them.
    After a crash, `restore` the last stored bytes: `outgoing` gives what was drawn then, to those who have
    not answered, and nothing is drawn again.

    Parameters
    ----------
    terms : RunTerms
        What was agreed.
    target : NoisyTarget
        The validation set, released.
    store : callable, optional
        Takes the state's bytes; make it durable.
    insecure_noise_seed : int, optional
        For tests: noise that may be known gives no protection.
    """

    def __init__(
        self,
        terms: RunTerms,
        target: NoisyTarget,
        *,
        store: Store | None = None,
        insecure_noise_seed: int | None = None,
    ) -> None:
        if target.cells.shape != (terms.features.width + 1,):
            raise UsageError("target has another width than the terms' features")
        self.terms, self.target = terms, target
        self.collected = ReceivedPoints(terms)
        self.lost: dict[str, int] = {}
        self._store, self._seed = store, insecure_noise_seed
        self._step = 0
        self._awaited: set[str] = set()
        self._bids: dict[str, int] = {}
        self._answers: dict[str, tuple[Answer, Hashes, Integers]] = {}
        self._requested: tuple[str, ...] = ()
        self._current: Broadcast | None = None
        width = terms.features.width + 1
        self._sums = NoisySums(width, coefficients_of(terms), sum_variance(terms))
        self._outputs: Integers = np.zeros((0, width), np.int64)
        self._counts: list[float] = []

    def __repr__(self) -> str:
        return f"<CuratorState CONFIDENTIAL run={self.terms.run!r} step={self._step}>"

    @property
    def secure(self) -> bool:
        """Whether all noise came from the operating system's generator."""
        return self._seed is None and self.target.secure

    @property
    def step(self) -> int:
        """The number of the last broadcast that was drawn."""
        return self._step

    @property
    def round(self) -> int:
        """The round of the last broadcast that was drawn."""
        return -(-self._step // self._phases)

    @property
    def awaited(self) -> frozenset[str]:
        """Who has not answered the current step."""
        return frozenset(self._awaited)

    @property
    def done(self) -> bool:
        """Whether every round has been held and answered."""
        return self._step == self.terms.rounds * self._phases and not self._awaited

    def advance(self) -> None:
        """Draw the next broadcasts; the state is stored before they can be read.

        Raises
        ------
        UsageError
            while answers are awaited, or when the run is over.
        """
        if self._awaited:
            raise UsageError(
                "answers are still awaited", remedy="take them, or lose the owners that do not come back"
            )
        if self.done:
            raise UsageError("the agreed number of rounds is over")
        if self._phases == 1 or self._step % 2 == 0:
            self._current = self._next_round()
            self._requested = ()
        else:
            self._ask()
        self._step += 1
        self._awaited = set(self.terms.owners) - self.lost.keys()
        if self._store is not None:
            self._store(self.save())

    def outgoing(self) -> Mapping[str, Broadcast]:
        """The broadcast for each owner that has not answered.

        Reading it again returns the same broadcasts.
        """
        return {name: self._for(name) for name in self.terms.owners if name in self._awaited}

    def take(self, answer: Answer) -> None:
        """Accept an answer to the current step.

        Raises
        ------
        FileRefused
            of another run or step, not awaited, or with points that the rule does not allow. Nothing of it
            is kept.
        """
        if answer.run != self.terms.run or answer.step != self._step or answer.owner not in self._awaited:
            raise FileRefused("this answer is of another run or step, or was given before")
        assert self._current is not None
        phase = self._for(answer.owner).phase
        if phase == BID:
            self.collected.check(answer, most=0)
            if answer.bid is not None:
                self._bids[answer.owner] = answer.bid
        else:
            hashes = self.collected.check(answer, most=self._most(answer.owner, phase))
            self._answers[answer.owner] = answer, hashes, self._verified_gains(answer, hashes, phase)
        self._no_longer_awaited(answer.owner)

    def lose(self, owner: str) -> None:
        """Continue permanently without an owner; the consumer is notified, the other owners are not."""
        if owner not in self.terms.owners:
            raise UsageError("owner", "must be one of the terms' owners", got="another")
        self.lost.setdefault(owner, self.round)
        self._bids.pop(owner, None)
        self._answers.pop(owner, None)
        if owner in self._awaited:
            self._no_longer_awaited(owner)

    def save(self) -> bytes:
        """The whole state; confidential."""
        values = {
            "terms": self.terms.to_bytes().hex(),
            "target": self.target.to_bytes().hex(),
            "step": self._step,
            # Answers that have not been settled are requested again.
            "awaited": sorted(self._awaited | self._answers.keys()),
            "bids": self._bids,
            "requested": list(self._requested),
            "lost": self.lost,
            "current": None if self._current is None else self._current.to_bytes().hex(),
        }
        arrays = {"outputs": self._outputs, "sums": self._sums.increments, **self.collected.arrays()}
        return pack("curator", values, arrays)

    def restore(self, data: bytes) -> None:
        """Go on where `save` stopped, under the same terms and target.

        Raises
        ------
        FileRefused
            the bytes are damaged, or belong to another run.
        """
        _, values, arrays = unpack(data, "curator")
        if values["terms"] != self.terms.to_bytes().hex() or values["target"] != self.target.to_bytes().hex():
            raise FileRefused("this state is of another run")
        self._step, self._awaited = values["step"], set(values["awaited"])
        self._bids, self._requested, self.lost = values["bids"], tuple(values["requested"]), values["lost"]
        current = values["current"]
        self._current = None if current is None else Broadcast.from_bytes(bytes.fromhex(current))
        self._outputs = arrays["outputs"]
        self._sums.increments = arrays["sums"]
        self.collected.resume(arrays)

    @property
    def _phases(self) -> int:
        return len(PHASES[self.terms.rule])

    def _next_round(self) -> Broadcast:
        """Release what the last round added, and ask for more."""
        if self._step:
            increment = self.collected.increment(count_step(self.terms.features))
            output = self._sums.release(increment, insecure_noise_seed=self._round_seed())
            self._outputs = np.concatenate([self._outputs, output[None]])
        return self._public_broadcast()

    def _public_broadcast(self) -> Broadcast:
        """The broadcast of a new round: a function of the terms, the target and the noisy outputs alone."""
        summary, count = self._public_sum(len(self._outputs))
        target = self.target.mean()
        direction = direction_of(target, summary, count)
        kept = kept_share(direction, self._direction_variance(count))
        direction = direction * kept
        integers, scale = as_integers(direction)
        number = len(self._outputs) + 1
        broadcast = Broadcast(self.terms.run, self._step + 1, number, PHASES[self.terms.rule][0], integers)
        if self.terms.rule == THRESHOLD:
            mean = mean_gain(direction, kept, target, self.target.mean_variance)
            chance, threshold = self._bar(mean * scale, float(np.linalg.norm(direction)) * scale)
            return replace(broadcast, threshold=threshold, chance=chance)
        return replace(broadcast, quota=self.terms.batch) if self.terms.rule == FRESH else broadcast

    def _public_sum(self, releases: int) -> tuple[Floats, float]:
        """The summary's feature sum and size as everyone may know them after that many releases."""
        if not releases:
            return np.zeros(self.terms.features.width), 0.0
        cells = self._sums.estimate(self._outputs[:releases])
        if self.terms.rule == FRESH:
            return cells[:-1], float(min(releases * self.terms.batch, self.terms.size))
        return cells[:-1], max(float(cells[-1]) / count_step(self.terms.features), 1.0)

    def _direction_variance(self, count: float) -> float:
        """The variance of the noise in one coordinate of the direction."""
        releases = len(self._outputs)
        of_sum = (self._sums.deviation(releases) / (count + 1.0)) ** 2 if releases else 0.0
        return self.target.mean_variance + of_sum

    def _bar(self, mean: float, length: float) -> tuple[int, int]:
        """Chance and threshold: replayed from the public counts, so that a restored run goes on alike."""
        steering = ThresholdSteering(self.terms.reach, self.terms.rounds)
        chance = 0.0
        for releases in range(len(self._outputs) + 1):
            if releases == len(self._counts):
                self._counts.append(self._public_sum(releases)[1])
            deviation = self._sums.deviation(releases) / count_step(self.terms.features)
            chance = steering.next(self._counts[releases], deviation)
        # One record's features are about 1/unit long, and gains spread over a small part of their range.
        spread = 0.1 * length / self.terms.features.unit
        if not len(self._outputs):
            return as_chance(chance), -MAX_GAIN
        return as_chance(chance), round(mean - steering.lowered * spread)

    def _ask(self) -> None:
        """Flip an exact coin for every bidder, whose log-odds fall by ``rate`` with each rank."""
        ranked = sorted(self._bids, key=lambda name: (-self._bids[name], name))
        rate = Fraction(self.terms.rate or 0)
        against = [rate * (rank - self._middle) for rank in range(1, len(ranked) + 1)]
        coins = flip_coins(against, insecure_noise_seed=self._round_seed())
        self._requested = tuple(name for name, coin in zip(ranked, coins, strict=True) if coin)

    @property
    def _middle(self) -> Fraction:
        """The rank that is selected half of the time: a batch of points is expected in each round."""
        return self.terms.batch + Fraction(1, 2)

    def _for(self, owner: str) -> Broadcast:
        current = self._current
        assert current is not None
        if current.phase != BID or self._step == current.step:
            return current
        return replace(current, step=self._step, phase=DELIVER, requested=owner in self._requested)

    def _most(self, owner: str, phase: str) -> int | None:
        if phase == DELIVER:
            return 1 if owner in self._requested else 0
        if self.terms.rule == FRESH:
            return self.terms.batch
        return self.terms.cap

    def _verified_gains(self, answer: Answer, hashes: Hashes, phase: str) -> Integers:
        """The gains of an answer's points; those that do not have the gain they were sent for are refused."""
        assert self._current is not None
        gains = scores(hashes, self._current.direction)
        threshold = self._current.threshold
        if threshold is not None and len(gains) and int(gains.min()) < threshold:
            raise FileRefused("a point does not reach the threshold")
        if phase == DELIVER and len(gains) and int(gains[0]) != self._bids.get(answer.owner):
            raise FileRefused("the point is not worth its bid")
        return gains

    def _no_longer_awaited(self, owner: str) -> None:
        """With the last answer: move what the rule takes into the summary, in the order of the terms."""
        self._awaited.discard(owner)
        if self._awaited or self._for(owner).phase == BID:
            return
        assert self._current is not None
        for name in self.terms.owners:
            if name in self._answers:
                self.collected.add(*self._answers[name])
        pool = self.collected.pool()
        if self.terms.rule == FRESH:
            gains = scores(self.collected.hashes[pool], self._current.direction)
            room = min(self.terms.batch, self.terms.size - self.collected.chosen)
            pool = pool[best_first(gains, self.collected.hashes[pool], max(room, 0))]
        self.collected.choose(pool)
        self._answers, self._bids = {}, {}

    def _round_seed(self) -> int | None:
        return None if self._seed is None else self._seed * (1 << 24) + self._step


_STORED: Final = ("points", "extra", "owners", "gains")


class ReceivedPoints:
    """Points with their hashes, gains and owners, in the order in which they came."""

    def __init__(self, terms: RunTerms) -> None:
        self._terms = terms
        columns = terms.features.width if terms.hashed else terms.features.dim
        self.points: Floats = np.empty((0, columns))
        self.extra: Floats = np.empty((0, terms.extra))
        self.hashes: Hashes = np.empty((0, terms.features.width), np.int16)
        self.owners: Integers = np.empty(0, np.int64)
        self.gains: Integers = np.empty(0, np.int64)
        self._chosen: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._counted: NDArray[np.bool_] = np.empty(0, np.bool_)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return "<ReceivedPoints CONFIDENTIAL>"

    @property
    def chosen(self) -> int:
        """How many points are in the summary."""
        return int(self._chosen.sum())

    def pool(self) -> Integers:
        """The places of the points that are not in the summary."""
        return np.flatnonzero(~self._chosen)

    def check(self, answer: Answer, *, most: int | None) -> Hashes:
        """The hashes of an answer's points; FileRefused if they break the rule."""
        points = answer.points
        if points.shape[1:] != self.points.shape[1:] or answer.extra.shape != (
            len(points),
            self._terms.extra,
        ):
            raise FileRefused("an answer's points have the wrong number of columns")
        if most is not None and len(points) > most:
            raise FileRefused("an answer has more points than were requested")
        cap = self._terms.cap
        number = self._terms.owners.index(answer.owner)
        if cap is not None and int((self.owners == number).sum()) + len(points) > cap:
            raise FileRefused("an owner sent more points than its cap")
        if not len(points):
            return np.empty((0, self._terms.features.width), np.int16)
        if self._terms.hashed:
            return self._checked_hashes(points)
        try:
            return self._terms.features.hashes(points)
        except DataRefused:
            raise FileRefused("an answer holds a number that is not finite") from None

    def add(self, answer: Answer, hashes: Hashes, gains: Integers) -> None:
        """Keep the points of an answer that was checked."""
        size = len(hashes)
        owner = self._terms.owners.index(answer.owner)
        self.points = np.concatenate([self.points, answer.points])
        self.extra = np.concatenate([self.extra, answer.extra])
        self.hashes = np.concatenate([self.hashes, hashes])
        self.owners = np.concatenate([self.owners, np.full(size, owner)])
        self.gains = np.concatenate([self.gains, gains])
        self._chosen = np.concatenate([self._chosen, np.zeros(size, np.bool_)])
        self._counted = np.concatenate([self._counted, np.zeros(size, np.bool_)])

    def choose(self, places: Integers) -> None:
        """Move points into the summary."""
        self._chosen[places] = True

    def increment(self, step: int) -> Integers:
        """What the summary gained since the last call: feature sums, and the count times ``step``."""
        new = self._chosen & ~self._counted
        self._counted = self._chosen.copy()
        return np.append(self.hashes[new].sum(axis=0, dtype=np.int64), int(new.sum()) * step)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, for a snapshot."""
        flags = self._chosen.astype(np.int8) + 2 * self._counted.astype(np.int8)
        return {**{name: getattr(self, name) for name in _STORED}, "flags": flags}

    def resume(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from a snapshot; hashes are made again."""
        for name in _STORED:
            setattr(self, name, arrays[name])
        self._chosen, self._counted = arrays["flags"] % 2 == 1, arrays["flags"] >= 2
        if self._terms.hashed:
            self.hashes = self.points.astype(np.int16)
        elif len(self.points):
            self.hashes = self._terms.features.hashes(self.points)

    def _checked_hashes(self, points: Floats) -> Hashes:
        whole = np.rint(points)
        squares = (whole**2).sum(axis=1)
        if (whole != points).any() or (len(whole) and squares.max() > self._terms.features.length_squared):
            raise FileRefused("an answer's hashes must be integers, and not too long")
        return whole.astype(np.int16)


_LARGEST = 1 << 28
_FIRST_CHANCE = 1.0 / 128.0
_FASTEST = 2.0
_MOST_BATCHES = 12.0


def direction_of(target: Floats, summary: Floats, count: float) -> Floats:
    """Target mean minus summary mean: up to a factor and a constant, the marginal gain of every point.

    ``J(S + x) − J(S)`` is ``2/(n + 1)·(μ·φ(x) − s·φ(x)/(n + 1))`` plus terms that are equal for all points of
    one norm.
    """
    return target if count < 1.0 else target - summary / (count + 1.0)


def kept_share(direction: Floats, variance: float) -> Floats:
    """How much of each pair of coordinates is worth keeping, from 0 to 1, given the noise in each.

    The share of a pair's squared length that noise does not explain (positive-part James and Stein), which
    is post-processing.
    """
    size = 2 if direction.size % 2 == 0 else 1
    squared = (direction.reshape(-1, size) ** 2).sum(axis=1)
    kept = np.maximum(1.0 - size * variance / np.maximum(squared, 1e-300), 0.0)
    return np.repeat(kept, size)


def as_integers(direction: Floats) -> tuple[Integers, float]:
    """A direction as integers within ±2²⁸, and how many of them make one."""
    largest = float(np.abs(direction).max()) if direction.size else 0.0
    scale = _LARGEST / largest if largest > 0.0 else 1.0
    return np.rint(direction * scale).astype(np.int64), scale


class ThresholdSteering:
    """How many of those who qualify are taken, from noisy counts, so that the rounds end near ``reach``.

    In the first round everyone qualifies: its points show what the owners hold on the whole. From the second
    on the number that qualify is estimated as what was sent over the chances it had. The chance spreads what
    is missing over the rounds that are left, and grows slowly, so that one noisy count never empties a pool.
    When everything that qualifies is taken and it is not enough, the bar is lowered.
    """

    def __init__(self, reach: int, rounds: int) -> None:
        self._reach, self._rounds = reach, rounds
        self._chances: list[float] = []
        self._first = 0.0
        self.lowered = 0.0

    def next(self, count: float, deviation: float) -> float:
        """The probability of the coming round, after a noisy count of what has been sent so far.

        Call once per round, in order, with 0 before the first.
        """
        past = len(self._chances)
        chance = _FIRST_CHANCE
        if past == 1:
            self._first = max(count, 0.0)
            chance *= _FASTEST
        elif past:
            sent = max(count - self._first, 2.0 * deviation, 1.0)
            qualified = sent / max(sum(self._chances[1:]), _FIRST_CHANCE)
            needed = max(self._reach - count, 0.0) / (self._rounds - past)
            chance = min(needed / qualified, _FASTEST * max(self._chances[-1], _FIRST_CHANCE))
            if chance > 1.0:
                self.lowered += min(chance - 1.0, 1.0)
            # Were everyone to qualify at once, no more than this many batches would come.
            everyone = max(self._first, 2.0 * deviation, 1.0) / _FIRST_CHANCE
            chance = min(chance, _MOST_BATCHES * needed / everyone) if self.lowered == 0.0 else chance
        chance = min(max(chance, 0.0), 1.0)
        self._chances.append(chance)
        return chance


def mean_gain(direction: Floats, kept: Floats, target: Floats, variance: float) -> float:
    """The validation set's mean gain along a shrunken direction that was made of its own noisy mean.

    The noise in both adds to their product. By Stein's identity that is the variance times the divergence of
    the shrinking, which for pairs is 1 for every coordinate that is kept at all; it is taken off.
    """
    return float(direction @ target) - variance * int((kept > 0.0).sum())


def as_chance(chance: float) -> int:
    """A probability in steps of 1/65536, rounded."""
    return round(min(max(chance, 0.0), 1.0) * CERTAIN)


class OwnerState:
    """One owner's records and how far its run has come; holds no socket, and decides by the rule alone.

    A broadcast of another run, out of order, or unlike the one already answered under its number is refused
    with `FileRefused`, and changes nothing. The same broadcast again gets the same answer, bit for bit. The
    cap of the terms holds whatever is requested.

    Parameters
    ----------
    name : str
        This owner's name in the terms.
    records : array-like of shape (n_records, dim)
        The points, in the columns that are compared.
    terms : RunTerms
        What was agreed.
    extra : array-like of shape (n_records, n_extra), optional
        What is sent with a point and not compared, such as a label.
    features : SummaryFeatures, optional
        In the mode that sends hashes: the terms' features under the seed that owners and consumer share.
    store : callable, optional
        Takes the state's bytes before an answer is handed out; make it durable, and `restore` it after a
        crash.

    Privacy
    -------
    A point's gain depends on that point and on what was broadcast, exactly (integers). Ties are broken by
    place, so that one record more leaves the order of the others as it was. Coins are drawn for every
    record in every round, whatever the others do.
    """

    def __init__(
        self,
        name: str,
        records: ArrayLike,
        terms: RunTerms,
        *,
        extra: ArrayLike | None = None,
        features: SummaryFeatures | None = None,
        store: Store | None = None,
        insecure_noise_seed: int | None = None,
    ) -> None:
        if name not in terms.owners:
            raise UsageError("name", "must be one of the owners in the terms", got="another")
        self.name = name
        self.terms = terms
        self._features = _own_features(terms, features)
        self._points: Floats = np.ascontiguousarray(np.asarray(records, dtype=np.float64))
        self._hashes = self._features.hashes(self._points)
        self._extra = _extra_columns(extra, len(self._points), terms.extra)
        self._sent: NDArray[np.bool_] = np.zeros(len(self._points), np.bool_)
        self._step = 0
        self._seen = ""
        self._chosen: Integers = np.empty(0, np.int64)
        self._bid: int | None = None
        self._best = -1
        self._store = store
        self._seed = insecure_noise_seed

    def __repr__(self) -> str:
        return f"<OwnerState CONFIDENTIAL name={self.name!r} step={self._step}>"

    @property
    def step(self) -> int:
        """The number of the last broadcast that was answered."""
        return self._step

    @property
    def sent(self) -> int:
        """How many points have left; for this owner's eyes."""
        return int(self._sent.sum())

    def answer(self, broadcast: Broadcast) -> Answer:
        """What the rule allows for this broadcast.

        Raises
        ------
        FileRefused
            another run, a step out of order, a phase that the rule does not have, or a wrong width.
        """
        data = broadcast.to_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if broadcast.step == self._step and digest == self._seen:
            return self._answer()
        self._check(Broadcast.from_bytes(data))
        if broadcast.phase == BID:
            self._offer(broadcast)
        elif broadcast.phase == DELIVER:
            self._choose(np.array([self._best] if broadcast.requested and self._best >= 0 else [], np.int64))
            self._bid = None
        else:
            self._choose(self._allowed(broadcast))
        self._step, self._seen = broadcast.step, digest
        if self._store is not None:
            self._store(self.save())
        return self._answer()

    def save(self) -> bytes:
        """How far the run has come, without the records; confidential."""
        values = {
            "run": self.terms.run,
            "name": self.name,
            "step": self._step,
            "seen": self._seen,
            "bid": self._bid,
            "best": self._best,
            "records": self._digest(),
        }
        return pack("owner", values, {"sent": self._sent.astype(np.int8), "chosen": self._chosen})

    def restore(self, data: bytes) -> None:
        """Go on where `save` stopped, with the same records in the same order.

        Raises
        ------
        FileRefused
            the bytes are damaged, or belong to another run or other records.
        """
        _, values, arrays = unpack(data, "owner")
        mine = unpack(self.save(), "owner")[1]
        if any(values.get(name) != mine[name] for name in ("run", "name", "records")):
            raise FileRefused("this state is of another run or of other records")
        self._step, self._seen = values["step"], values["seen"]
        self._bid, self._best = values["bid"], values["best"]
        self._sent, self._chosen = arrays["sent"].astype(np.bool_), arrays["chosen"]

    def _digest(self) -> str:
        """A digest of records, columns and a secret seed, by which they are recognised after a restart."""
        digest = hashlib.sha256(self._points.tobytes() + self._extra.tobytes())
        digest.update(str(self._features.seed).encode())
        return digest.hexdigest()

    def _check(self, broadcast: Broadcast) -> None:
        phases = PHASES[self.terms.rule]
        expected = phases[self._step % len(phases)]
        if broadcast.run != self.terms.run:
            raise FileRefused("this broadcast belongs to another run")
        if broadcast.step != self._step + 1:
            raise FileRefused(
                f"broadcast {self._step + 1} is due",
                got=broadcast.step,
                remedy="a round is answered once, in order",
            )
        if broadcast.phase != expected or broadcast.round != self._step // len(phases) + 1:
            raise FileRefused("this broadcast has another phase or round than its number")
        if broadcast.round > self.terms.rounds:
            raise FileRefused("the agreed number of rounds is over")
        if broadcast.direction.shape != (self._features.width,):
            raise FileRefused("this broadcast's direction has another width than the terms'")
        if (broadcast.threshold is not None) != (self.terms.rule == THRESHOLD):
            raise FileRefused("this broadcast follows another rule than the agreed one")
        if broadcast.quota > self.terms.batch:
            raise FileRefused("this broadcast requests more than the agreed batch")

    def _allowed(self, broadcast: Broadcast) -> Integers:
        """The places of the points to send, in an order that one record more does not change."""
        gains = scores(self._hashes, broadcast.direction)
        if broadcast.threshold is None:
            unsent = np.flatnonzero(~self._sent)
            order = best_first(gains[unsent], self._hashes[unsent], broadcast.quota)
            return unsent[order]
        allowed = ~self._sent & (gains >= broadcast.threshold)
        if broadcast.chance < CERTAIN:
            seed = None if self._seed is None else self._seed * MAX_STEPS + broadcast.step
            coins = random_places(len(gains), CERTAIN, insecure_noise_seed=seed)
            allowed &= coins < broadcast.chance
        return np.flatnonzero(allowed)

    def _offer(self, broadcast: Broadcast) -> None:
        self._chosen = np.empty(0, np.int64)
        self._bid, self._best = None, -1
        if self._room() != 0 and not self._sent.all():
            gains = scores(self._hashes, broadcast.direction)
            gains[self._sent] = np.iinfo(np.int64).min
            self._best = int(np.argmax(gains))
            self._bid = int(gains[self._best])

    def _choose(self, places: Integers) -> None:
        room = self._room()
        self._chosen = places.astype(np.int64)[: len(places) if room is None else room]
        self._sent[self._chosen] = True

    def _room(self) -> int | None:
        """How many points may still leave; None without a cap."""
        return None if self.terms.cap is None else max(self.terms.cap - self.sent, 0)

    def _answer(self) -> Answer:
        hashed = self.terms.hashed
        points = self._hashes[self._chosen].astype(np.float64) if hashed else self._points[self._chosen]
        return Answer(self.terms.run, self._step, self.name, points, self._extra[self._chosen], self._bid)


MAX_STEPS = 1 << 20


def _extra_columns(extra: ArrayLike | None, rows: int, columns: int) -> Floats:
    values: Floats = np.empty((rows, 0)) if extra is None else np.asarray(extra, dtype=np.float64)
    values = np.ascontiguousarray(values.reshape(rows, -1) if values.size or rows == 0 else values)
    if values.shape != (rows, columns):
        raise DataRefused("extra", f"must have {columns} columns and a row for each record")
    if not np.isfinite(values).all():
        raise DataRefused("extra", "must be finite numbers", got="one that is not")
    return values


def _own_features(terms: RunTerms, features: SummaryFeatures | None) -> SummaryFeatures:
    """The terms' features, or in hashed mode the same under the owners' own seed."""
    if not terms.hashed:
        if features not in (None, terms.features):
            raise UsageError("features", "must be those of the terms unless hashes are sent")
        return terms.features
    if features is None:
        raise UsageError("features", "must be given where hashes are sent, with the seed that owners share")
    if replace(features, seed=terms.features.seed) != terms.features:
        raise UsageError("features", "must be those of the terms up to the seed")
    return features


@dataclass(frozen=True, slots=True)
class SummaryClaims(Result):
    """What the messages of one run cost, over all rounds; known before the first.

    ``owners`` is what any coalition of owners learns about one record of another owner. ``validation`` is
    what all owners learn about one record of the validation set. ``together`` holds for someone who may have
    one record in each.
    """

    owners: Claim
    validation: Claim
    together: Claim

    def epsilon(self, delta: float) -> float:
        """ε of all messages together, validation included, at a δ."""
        assert self.together.promise.rho is not None
        return zcdp_epsilon(self.together.promise.rho, delta)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary:
    """A finished run; confidential, for the consumer.

    ``seen`` is how many points the curator was sent, ``parsimony`` that number per point of the summary and
    validation set. ``values`` attributes the summary's worth to owners by the gains at which their points
    were taken. ``lost`` names owners that did not stay, with the round in which they left. None of these may
    be disclosed to an owner: they depend on everyone's records and are not paid for.
    """

    points: Floats
    extra: Floats
    owners: Integers
    seen: int
    parsimony: float
    values: dict[str, float]
    lost: dict[str, int]
    claims: SummaryClaims

    def __repr__(self) -> str:
        return f"<Summary CONFIDENTIAL claims={self.claims.together!r}>"

    def as_json(self) -> dict[str, Any]:
        """Everything but the points, for the consumer's own report."""
        return {
            "size": len(self.points),
            "seen": self.seen,
            "parsimony": self.parsimony,
            "values": self.values,
            "lost": self.lost,
            "claims": self.claims.as_json(),
        }


def owners_claim(terms: RunTerms, *, secure: bool = True) -> Claim:
    """What any coalition of owners learns about one record of another, known from the terms alone.

    Raises
    ------
    UsageError
        if the terms promise nothing.
    """
    if terms.rho is None:
        raise UsageError("the terms promise nothing", got="no rho")
    return _claim(terms.rho, terms, secure=secure)


def target_claim(rho: Fraction, *, secure: bool = True) -> Claim:
    """What the release of a validation set reveals about one of its records, whatever the run."""
    return _claim(rho, None, secure=secure)


def _claim(rho: Fraction, terms: RunTerms | None, *, secure: bool) -> Claim:
    """The claim of a release, or of all messages of a run on these terms."""
    rule = None if terms is None else terms.rule
    return Claim(
        promise=Promise.of(rho=rho),
        unit="record",
        records_per_unit=1,
        relation=Relation.ADD_REMOVE,
        mechanism=Mechanism.of("factorised discrete gaussian" if rule == THRESHOLD else "discrete gaussian"),
        # The auction's coins have rounded probabilities; everything else is exact.
        arithmetic="real arithmetic" if rule == AUCTION else "exact integers",
        secure=secure,
        assumptions=("the curator follows the protocol and sends owners nothing but its broadcasts",),
    )


def claims_of(curator: CuratorState) -> SummaryClaims:
    """The claims of a run, from its terms and its target."""
    terms, target = curator.terms, curator.target
    owners = owners_claim(terms, secure=curator.secure)
    assert terms.rho is not None
    return SummaryClaims(
        owners=owners,
        validation=target_claim(target.rho, secure=curator.secure),
        together=_claim(terms.rho + target.rho, terms, secure=curator.secure),
    )


def summary_of(curator: CuratorState, validation: ArrayLike | None = None) -> Summary:
    """Choose the summary from everything the curator was sent, greedily and without noise.

    Nothing of the choice goes back to an owner, so it costs nothing. ``validation`` is the exact validation
    set where the curator may see it; without it the noisy release guides the choice.

    Raises
    ------
    UsageError
        if the run is not over.
    """
    if not curator.done:
        raise UsageError("the run is not over")
    terms, collected = curator.terms, curator.collected
    target = curator.target.mean()
    if validation is not None and not terms.hashed:
        target = terms.features.hashes(validation).mean(axis=0)
    places = greedy_choice(collected.hashes, target, terms.size, unit=terms.features.unit)
    count = len(np.asarray(validation)) if validation is not None else round(curator.target.count)
    gains = np.maximum(collected.gains[places].astype(np.float64), 0.0)
    owners = collected.owners[places]
    worth = np.bincount(owners, weights=gains, minlength=len(terms.owners))
    total = float(worth.sum()) or 1.0
    return Summary(
        points=collected.points[places],
        extra=collected.extra[places],
        owners=owners,
        seen=len(collected),
        parsimony=(len(collected) + count) / (len(places) + count),
        values={name: float(worth[i]) / total for i, name in enumerate(terms.owners)},
        lost=dict(curator.lost),
        claims=claims_of(curator),
    )


DEFAULT_RULE = THRESHOLD
VALIDATION_SHARE = 0.6
"""The noise of both releases meets in one direction, where it counts by one over the number of records: a
validation set is the smaller one, and is released once."""
DEFAULT_REACH = 3
"""Points sent for each point of the summary.

With two, a noisy direction in an early round remains visible in the result.
"""
DEFAULT_ROUNDS = {FRESH: 10, THRESHOLD: 12}


def plan_terms(
    features: SummaryFeatures,
    owners: tuple[str, ...],
    size: int,
    rho: float | Fraction,
    *,
    rule: str = DEFAULT_RULE,
    rounds: int | None = None,
    reach: int | None = None,
    cap: int | None = None,
    rate: float | Fraction | None = None,
    extra: int = 0,
    hashed: bool = False,
) -> RunTerms:
    """The terms of a run with the defaults filled in, under a new name.

    ``rho`` is what owners may learn of each other over all rounds. ``cap`` is the most that one owner sends;
    the default never binds under *fresh*, whose quotas are fixed, and is ``reach`` under *threshold*.
    """
    if rule in DEFAULT_ROUNDS:
        rounds = min(DEFAULT_ROUNDS[rule], size) if rounds is None else rounds
        batch = math.ceil(size / rounds)
    else:
        batch = max(1, len(owners) // 2)
        rounds = math.ceil(size / batch) if rounds is None else rounds
    reach = DEFAULT_REACH * size if reach is None else reach
    if cap is None:
        cap = reach if rule == THRESHOLD else rounds * batch
    elif rule == FRESH and cap < rounds * batch:
        raise UsageError(
            "cap",
            f"must be at least rounds × batch = {rounds * batch} under the rule fresh",
            got=f"{cap}",
            remedy="an owner that drops out halfway would change what the claim rests on",
        )
    return RunTerms(
        run=secrets.token_hex(16),
        rule=rule,
        features=features,
        owners=owners,
        size=size,
        rounds=rounds,
        batch=batch,
        reach=reach,
        cap=cap,
        rho=Fraction(rho),
        rate=None if rate is None else exact("rate", rate),
        extra=extra,
        hashed=hashed,
    )


def split_budget(
    epsilon: float, delta: float, validation_share: float = VALIDATION_SHARE
) -> tuple[Fraction, Fraction]:
    """(ρ of the owners' messages, ρ of the validation set) that together keep (ε, δ).

    >>> owners, validation = split_budget(2.0, 1e-5)
    >>> round(float(owners + validation), 4)
    0.1083
    """
    if not 0.0 < validation_share < 1.0:
        raise ClaimError("validation_share", "must be between 0 and 1", got=f"{validation_share:g}")
    whole = Fraction(zcdp_rho(epsilon, delta))
    of_validation = whole * Fraction(validation_share)
    return whole - of_validation, of_validation


@request
class Comparison:
    """What a run and the release of its validation set have in common; nothing is read off private records.

    ``epsilon`` and ``delta`` are spent by all messages together; ``validation_share`` of the ρ behind them by
    the release of the validation set.
    """

    epsilon: float = required("ε of all messages of the run together.", above=0, at_most=1e3)
    delta: float = required("δ, below 1/(10 × number of records).", above=0, below=1)
    bandwidth: float = required("Scale of the Gaussian kernel in the units of the data; public.", above=0)
    features: int = setting(500, "Number of random frequencies.", at_least=1, at_most=MAX_WIDTH // 2)
    validation_share: float = setting(
        VALIDATION_SHARE, "Fraction of the budget for the release of the validation set.", above=0, below=1
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def compared(self, dim: int, seed: int = PUBLIC_SEED) -> SummaryFeatures:
        """The features as the curator may know them."""
        return SummaryFeatures(dim=dim, bandwidth=self.bandwidth, features=self.features, seed=seed)

    def split(self) -> tuple[Fraction, Fraction]:
        """ρ of the owners' messages, and ρ of the validation set's release."""
        return split_budget(self.epsilon, self.delta, self.validation_share)


@request
class RunSpec:
    """What a run promises and how long it is. ``hashes``: owners send hashes under a secret seed."""

    comparison: Comparison
    size: int = required("Number of points of the summary.", at_least=1)
    rule: str = setting(DEFAULT_RULE, "threshold, fresh or auction.", choices=RULES)
    rounds: int | None = setting(
        None, "Number of rounds. [default: depends on the rule]", at_least=1, at_most=MAX_ROUNDS
    )
    reach: int | None = setting(
        None, "Total number of points to be sent. [default: 3 × the size]", at_least=1
    )
    seed: int = setting(0, "Public seed of the features.")
    cap: int | None = setting(None, "Maximum number of points from one owner.", at_least=1)
    rate: float | None = setting(None, "Decrease of the log-odds per rank, for the auction.", above=0)
    hashes: bool = setting(
        False, "Owners send hashes; --validation is a file from hushsum summarize validation."
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def compared(self, dim: int) -> SummaryFeatures:
        """The features as the curator may know them."""
        return self.comparison.compared(dim, PUBLIC_SEED if self.hashes else self.seed)

    def terms(self, run: str | None, owners: tuple[str, ...], dim: int, extra: int) -> RunTerms:
        """The public agreement of the run with this name; of a new one by default."""
        settings = {name: getattr(self, name) for name in ("rule", "rounds", "reach", "cap", "rate")}
        planned = plan_terms(
            self.compared(dim),
            owners,
            self.size,
            self.comparison.split()[0],
            extra=extra,
            hashed=self.hashes,
            **settings,
        )
        return planned if run is None else replace(planned, run=run)


def summarize(
    owners: Mapping[str, ArrayLike],
    validation: ArrayLike,
    size: int,
    *,
    extra: Mapping[str, ArrayLike] | None = None,
    insecure_noise_seed: int | None = None,
    **keywords: Any,
) -> Summary:
    """Collect a summary of ``size`` points whose distribution matches the validation set.

    What owners learn, of each other's records and of the validation set together, is (ε, δ)-private over all
    rounds. The curator sees the points it is sent.

    Parameters
    ----------
    owners : mapping of names to array-like of shape (n_records, dim)
    validation : array-like of shape (n_validation, dim)
    size : int
    bandwidth : float
        Bandwidth of the Gaussian kernel that compares points.
    epsilon, delta : float
        Spent by all messages, the validation set's release included.
    features, seed : int
        Pairs of Fourier features, and their seed, which is public unless hashes are sent.
    rule : {"threshold", "fresh", "auction"}
        The default has the best match for the points it sees.
    extra : mapping of names to array-like of shape (n_records, n_extra), optional
        What goes with the points, such as labels.
    hashes : bool
        Owners send hashes instead of points.
    **keywords
        See `RunSpec` and `Comparison`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near, far = rng.normal(0.0, 1.0, (400, 2)), rng.normal(4.0, 1.0, (400, 2))
    >>> summary = summarize({"a": near, "b": far}, rng.normal(0.0, 1.0, (200, 2)), 50, bandwidth=1.0,
    ...     epsilon=2.0, delta=1e-5, features=100, insecure_noise_seed=1)
    >>> len(summary.points), summary.values["a"] > 0.5
    (50, True)
    """
    sizes = [np.asarray(records).shape for records in owners.values()]
    if not sizes or any(len(shape) != 2 for shape in sizes):
        raise UsageError("owners", "must map names to tables of records", got="none or no table")
    mine = {} if extra is None else {name: np.asarray(extra[name], np.float64) for name in owners}
    columns = {1 if each.ndim == 1 else each.shape[1] for each in mine.values()} or {0}
    if len(columns) > 1:
        raise UsageError("extra", "must have the same columns for every owner")
    own = {name: given for name, given in keywords.items() if name not in Comparison.__dataclass_fields__}
    run = RunSpec(comparison=picked(Comparison, keywords), size=size, **own)
    compared = run.comparison.compared(sizes[0][1], run.seed)
    terms = run.terms(None, tuple(owners), sizes[0][1], columns.pop())
    target = release_target(
        compared, validation, run.comparison.split()[1], insecure_noise_seed=insecure_noise_seed
    )
    curator = CuratorState(terms, target, insecure_noise_seed=insecure_noise_seed)
    states = {
        name: OwnerState(
            name,
            records,
            terms,
            extra=mine.get(name),
            features=compared if run.hashes else None,
            insecure_noise_seed=None if insecure_noise_seed is None else insecure_noise_seed + number + 1,
        )
        for number, (name, records) in enumerate(owners.items())
    }
    while not curator.done:
        curator.advance()
        for name, broadcast in curator.outgoing().items():
            curator.take(states[name].answer(broadcast))
    return summary_of(curator, validation)


HASHES = "hashes"
"""The column of a summary's file that holds hashes."""

COLUMNS = Parameter(help="Columns that are compared, separated by commas; default: all.", metavar="NAMES")
DEBIT_RHO = Parameter(help="Debit the validation set's release in ρ, not in ε and δ.", group="Ledger")


@request
class CuratorRequest:
    """What the owners are compared with, and what is collected.

    ``carry`` names columns that are collected with the points and not compared, such as a label. The release
    of the validation set is debited in ε and δ, or with ``debit_rho`` in ρ. The ``cells`` of its file are
    read as declared.
    """

    party: PartySpec
    validation: str = required("Records that the summary should resemble.", metavar="FILE")
    run: RunSpec
    columns: tuple[str, ...] | None = setting(None, COLUMNS)
    carry: tuple[str, ...] = setting(
        (), "Columns that are sent and not compared, such as a label.", metavar="NAMES"
    )
    pace: float = setting(1.0, "Time between the starts of rounds.", at_least=0, metavar="SECONDS")
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    debit_rho: bool = setting(False, DEBIT_RHO)


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary that was collected and written; for the consumer alone.

    ``together`` is what all messages cost at the requested δ.
    """

    output: str
    terms: RunTerms
    summary: Summary
    together: Claim
    by_owner: dict[str, int]
    idempotency_key: str | None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {
            "output": self.output,
            "run": self.terms.run,
            "rule": self.terms.rule,
            "rounds": self.terms.rounds,
            **self.summary.as_json(),
            "claim": self.together.in_numbers(),
            "by_owner": self.by_owner,
            "idempotency_key": self.idempotency_key,
        }


class CuratorMachine:
    """A run between its owners: first all of them accept the terms, then every round is held.

    An owner that refuses the terms before anything is drawn stops the run: that is for people to settle. One
    that refuses later, breaks the rule, or is away for too long is lost for good.
    """

    noun = "owner"
    resumable = True

    def __init__(self, opening: Opening, state: CuratorState) -> None:
        self.state = state
        self.run, self.parties = opening.terms.run, opening.terms.owners
        self.most_reply = opening.terms.most_answer
        self._opening = opening.to_bytes()
        self._gathering = not state.step
        self._ready: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._taken: dict[str, bytes] = {}

    @property
    def step(self) -> int:
        """The number of the broadcast that was drawn last; 0 before the first."""
        return self.state.step

    @property
    def done(self) -> bool:
        """Whether every round has been held and answered."""
        return self.state.done

    @property
    def members(self) -> tuple[str, ...]:
        """The owners that are not lost."""
        return tuple(name for name in self.parties if name not in self.state.lost)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Who has not accepted the terms, or not answered."""
        if self._gathering:
            return () if self._refusals else tuple(name for name in self.members if name not in self._ready)
        return tuple(self.state.awaited)

    def greeting(self, party: str) -> bytes:
        """The terms, also for an owner that has started again."""
        return self._opening

    def greeted(self, party: str, data: bytes) -> None:
        """Take note that an owner has accepted the terms."""
        if not control_in(data, "ready")[0]:
            raise PeerRefused("it sent something that is not a reply to the terms")
        self._ready.add(party)

    def request_for(self, party: str) -> bytes | None:
        """The broadcast of the open round; the same however often it is sent."""
        if self._gathering or party not in self.awaited:
            return None
        return self.state.outgoing()[party].to_bytes()

    def take(self, party: str, data: bytes) -> None:
        """Take an answer; the same bytes again change nothing."""
        digest = hashlib.sha256(data).digest()
        if self._taken.get(party) == digest:
            return
        answer = Answer.from_bytes(data, most=self.most_reply + MOST_CONTROL)
        if answer.owner != party:
            raise PeerRefused("it answered in the name of another owner")
        if party not in self.awaited:
            raise PeerRefused("it is not awaited, or answers again with other contents")
        self.state.take(answer)
        self._taken[party] = digest

    def refused(self, party: str, reason: HushsumError) -> None:
        """Lose the owner, or stop before the first draw."""
        if self._gathering:
            self._refusals.setdefault(party, str(reason))
        elif party in self.members and not self.done:
            self.state.lose(party)

    def open_step(self) -> None:
        """Draw the next broadcasts, unless answers are awaited."""
        if not self._gathering and not self.state.awaited:
            self.state.advance()

    def close_step(self) -> None:
        """Lose the owners that have not accepted the terms, or not answered."""
        for party, reason in self._refusals.items():
            raise PeerRefused(
                f"owner {short(party)}: {reason}",
                remedy="settle that and start again, nothing is spent twice",
            )
        for party in self.awaited:
            self.state.lose(party)
        self._gathering = False
        self._taken.clear()
        if not self.members:
            raise PeerLost("no owner is left", remedy="start the owners, and then this command again")


def collect_summary(
    request: CuratorRequest,
    owners: Sequence[str],
    output: str,
    listen: Address,
    *,
    patience: Patience,
    log: Log,
    progress: Callable[[float], None] = lambda _: None,
    listening: Callable[[int], None] = lambda _: None,
) -> Summarized:
    """Hold the run, write the summary, tell the owners that it is over; resumes with the same state.

    ``owners`` are the fingerprints of their keys.

    Raises
    ------
    UsageError
        if the state belongs to a run on other terms.
    PeerRefused
        if an owner refuses the terms; nothing was drawn for the owners then.
    PeerLost
        if no owner is left.
    """
    pinned = tuple(fingerprint_of(each) for each in owners)
    if len(set(pinned)) != len(pinned):
        raise UsageError("owner", "must name every owner once", got="one twice")
    identity = Identity.load(request.party.key)
    path = check_output(output, inputs=[request.validation, request.party.key])
    ledger = request.ledger.given()
    if request.run.hashes and ledger is not None:
        raise UsageError(
            "ledger",
            ("must not be given with ", NameOf("hashes"), ": the validation release is paid already"),
        )
    validation = _read_validation(request)
    with StateFolder(request.party.state or f"{output}.summarize") as folder:
        opening = _opening(request, folder, pinned, validation)
        key = None if ledger is None else ledger.idempotency_key or f"summarize-{opening.terms.run}"
        booking = None if ledger is None or key is None else Booking(ledger.budget(), key)
        target, staged = _target(request, folder, opening, validation, booking)
        state = CuratorState(opening.terms, target, store=lambda saved: folder.put("state", saved))
        kept = folder.get("state")
        if kept is not None:
            state.restore(kept)
            log(f"resuming round {state.round} of {opening.terms.rounds}")
        summaries: list[Summary] = []

        def finish() -> None:
            summaries.append(summary_of(state, validation.points))
            _write_columns(path, _columns(validation, request.carry, summaries[0]))
            if staged is not None:
                staged.publish()

        with listener(listen, backlog=len(pinned) + 4) as place:
            listening(place.getsockname()[1])
            machine = CuratorMachine(opening, state)
            Coordinator(identity, machine, patience=patience, pace=request.pace, log=log).serve(
                place, finish=finish, closed=lambda _: progress(state.round / opening.terms.rounds)
            )
    counts = np.bincount(summaries[0].owners, minlength=len(pinned))
    return Summarized(
        output=output,
        terms=opening.terms,
        summary=summaries[0],
        together=at_delta(summaries[0].claims.together, request.run.comparison.delta),
        by_owner={name: int(count) for name, count in zip(pinned, counts, strict=True)},
        idempotency_key=key,
    )


def _opening(
    request: CuratorRequest, folder: StateFolder, owners: tuple[str, ...], validation: _Validation
) -> Opening:
    """The terms of this run; of the one under way, if they are the same."""
    kept = folder.get("opening")
    run = None if kept is None else Opening.from_bytes(kept).terms.run
    terms = request.run.terms(run, owners, validation.dim, len(request.carry))
    opening = Opening(terms, validation.names, request.carry, validation.secret_check)
    if folder.keep("opening", opening.to_bytes()) != opening.to_bytes():
        raise UsageError(
            "state", "belongs to a run on other terms", remedy="repeat its options, or give another"
        )
    return opening


def _target(
    request: CuratorRequest,
    folder: StateFolder,
    opening: Opening,
    validation: _Validation,
    booking: Booking | None,
) -> tuple[NoisyTarget, StagedRelease | None]:
    """The validation set's release: debited, drawn once, and kept before anyone can see it."""
    kept = folder.get("target")
    if validation.released is not None:
        mine = validation.released.to_bytes()
        if folder.keep("target", mine) != mine:
            raise UsageError("state", "belongs to a run with another validation release")
        return validation.released, None
    comparison, points = request.run.comparison, validation.points
    rho = comparison.split()[1]

    def make() -> bytes:
        assert points is not None
        return folder.keep("target", kept or release_target(opening.terms.features, points, rho).to_bytes())

    claim = at_delta(target_claim(rho), None if request.debit_rho else comparison.delta)
    subject = {"kind": "validation set of a summarization", "run": opening.terms.run}
    try:
        staged = stage(booking, claim, subject, make)
    except AlreadyPublished:
        # The run ended, and is only written down once more.
        if kept is None:
            raise
        return NoisyTarget.from_bytes(kept), None
    if folder.keep("target", staged.payload) != staged.payload:
        raise another_release()
    return NoisyTarget.from_bytes(staged.payload), staged


@dataclass(frozen=True, slots=True, repr=False)
class _Validation:
    """The columns that are compared, and the validation set: exact ``points``, or a release of them.

    ``widths`` has the name and the width of each column that the summary's points have.
    """

    names: tuple[str, ...]
    dim: int
    widths: tuple[tuple[str, int], ...]
    points: Floats | None = None
    released: NoisyTarget | None = None
    secret_check: str = ""


def _read_validation(request: CuratorRequest) -> _Validation:
    """Read the validation set, or with hashes its release.

    Raises
    ------
    UsageError
        no column is left to compare, or the release was made for another run than the requested one.
    FileRefused
        the release is damaged.
    """
    if request.run.hashes:
        return _read_release(request)
    records = read_columns(request.validation, request.columns, request.cells)
    names = tuple(name for name in records.blocks if name not in request.carry)
    if not names:
        raise UsageError(
            "validation",
            "must be a file with a column to compare",
            remedy=("see ", NameOf("columns"), " and ", NameOf("carry")),
        )
    widths = tuple((name, records.blocks[name].shape[1]) for name in names)
    return _Validation(names, records.width(names), widths, points=records.choose(names))


def _read_release(request: CuratorRequest) -> _Validation:
    run, comparison = request.run, request.run.comparison
    made = HashedTarget.load(request.validation, maker="hushsum summarize validation")
    if made.features != run.compared(made.features.dim):
        names: tuple[Any, ...] = (NameOf("bandwidth"), " or ", NameOf("features"))
    elif made.target.rho != comparison.split()[1]:
        names = (NameOf("epsilon"), ", ", NameOf("delta"), " or ", NameOf("validation_share"))
    else:
        names = ()
    if names:
        raise UsageError(("the validation release was made for another ", *names))
    if request.columns not in (None, made.columns):
        raise UsageError("columns", "must be those of the validation release")
    if HASHES in request.carry:
        raise UsageError("carry", f"must not have {HASHES!r}, the summary's own column")
    widths = ((HASHES, made.features.width),)
    return _Validation(
        made.columns, made.features.dim, widths, released=made.target, secret_check=made.secret_check
    )


def _columns(validation: _Validation, carried: tuple[str, ...], summary: Summary) -> dict[str, Floats]:
    """The summary's points as named columns, in the shape that the validation file has."""
    ends = np.cumsum([width for _, width in validation.widths])
    parts = np.split(summary.points, ends[:-1], axis=1)
    compared = {name: part for (name, _), part in zip(validation.widths, parts, strict=True)}
    return {**compared, **{name: summary.extra[:, [i]] for i, name in enumerate(carried)}}


@request
class ValidationRequest:
    """The consumer's release of a validation set under the owners' secret, for one run."""

    hashes: str = required("The secret shared by owners and consumer.", metavar="FILE")
    comparison: Comparison
    columns: tuple[str, ...] | None = setting(None, COLUMNS)
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    debit_rho: bool = setting(False, DEBIT_RHO)


@dataclass(frozen=True, slots=True)
class ValidationReleased(Result):
    """A release that was written; ``check`` is that of the secret."""

    output: str
    columns: tuple[str, ...]
    check: str
    claim: Claim
    idempotency_key: str | None


def release_validation(request: ValidationRequest, file: str, output: str) -> ValidationReleased:
    """Write the noisy feature sums of a validation set under the owners' secret, once.

    With a ledger it is debited first, and the same command delivers the same bytes again after a crash.

    Raises
    ------
    UsageError
        if the output exists: noise drawn a second time would be averaged with the first.
    """
    secret, comparison = HashSecret.load(request.hashes), request.comparison
    path = check_output(output, inputs=[file, request.hashes])
    if path.exists():
        raise UsageError(f"{output!r} exists, and a validation set is released once for a run")
    records = read_columns(file, request.columns, request.cells)
    names = tuple(records.blocks)
    public = comparison.compared(records.width(names))
    rho = comparison.split()[1]

    def made() -> bytes:
        target = release_target(secret.features(public), records.choose(names), rho)
        return HashedTarget(public, names, secret.check, target).to_bytes()

    def deliver(payload: bytes) -> None:
        with atomic_file(path) as stream:
            stream.write(payload)

    claim = at_delta(target_claim(rho), None if request.debit_rho else comparison.delta)
    subject = {"kind": "validation set of a summarization", "check": secret.check}
    ledger, booking = request.ledger.given(), None
    if ledger is not None:
        sources, place = [file, request.hashes], str(path.absolute())
        key = ledger.idempotency_key or release_key(
            sources, ledger.dataset, claim.as_json(), subject, request.cells, place
        )
        booking = Booking(ledger.budget(), key)
    spend(booking, claim, subject, made, deliver=deliver)
    return ValidationReleased(
        output, names, secret.check, claim, None if booking is None else booking.idempotency_key
    )


def at_delta(claim: Claim, delta: float | None) -> Claim:
    """A claim in ρ as it is, or in ε at a δ."""
    rho = claim.promise.rho
    if rho is None or delta is None:
        return claim
    found = zcdp_epsilon(rho, delta)
    # The short number that ρ was made from, where it holds, instead of one a bit above it.
    short = round(found, 9)
    epsilon = short if zcdp_delta(rho, short) <= delta else found
    return replace(claim, promise=Promise.of(epsilon=epsilon, delta=delta))


def _write_columns(path: Path, columns: dict[str, Floats]) -> None:
    """Write a Parquet file of these columns, whole or not at all; those wider than 1 as lists.

    It holds records of the owners, so nobody but its owner may read it.
    """
    pa, parquet = pyarrow(), pyarrow("parquet")
    arrays = {}
    for name, values in columns.items():
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        width = values.shape[1]
        arrays[name] = flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)
    buffer = io.BytesIO()
    parquet.write_table(pa.table(arrays), buffer, compression="zstd")
    with atomic_file(path, mode=0o600) as stream:
        stream.write(buffer.getvalue())


def owner_spending(
    terms: RunTerms, *, ledger: LedgerOptions | None, fingerprint: str, delta: float | None = None
) -> RunSpending:
    """What a run on these terms costs the owner with this fingerprint, in ρ or in ε at a δ."""
    subject = {"kind": "summarization", "run": terms.run, "rule": terms.rule, "rounds": terms.rounds}
    claim = at_delta(owners_claim(terms), delta)
    return RunSpending("summarize", ledger, fingerprint, terms.run, claim, subject)


class OwnerMachine:
    """The side of one owner in a run.

    What is answered is decided by `OwnerState`, which stores where it stands before an answer leaves. A
    cap of the owner's own must be in the terms, whose noise covers it, and holds whatever is requested. The
    terms are only looked at until the first broadcast comes. Then they are paid for and the state folder is
    bound to them, before anything is answered: from there on another run is refused, so a curator cannot
    start over to get round the cap. ``spending`` makes what debits the owner's ledger for some terms. With a
    ``secret`` hashes are sent instead of points, and terms that request points are refused.
    """

    noun = "curator"
    continued = (PeerRefused, FileRefused, UsageError, DataRefused, BudgetExhausted)
    most_request = max(MOST_OPENING, MOST_BROADCAST)

    def __init__(
        self,
        identity: Identity,
        offer: ColumnBlocks,
        folder: StateFolder,
        *,
        cap: int | None = None,
        secret: HashSecret | None = None,
        spending: Callable[[RunTerms], RunSpending] | None = None,
        log: Log = lambda _: None,
    ) -> None:
        if folder.get("ended") is not None:
            remedy = "give another, or remove it, for a new run"
            raise UsageError("state", "holds a run that has ended", remedy=remedy)
        self._me = identity.fingerprint
        self._offer, self._folder = offer, folder
        self._cap, self._secret = cap, secret
        self._spending_of = spending or partial(owner_spending, ledger=None, fingerprint=self._me)
        self.spending: RunSpending | None = None
        self._log = log
        self._state: OwnerState | None = None
        self._opening = b""
        self._bound = False

    @property
    def state(self) -> OwnerState:
        """How far the run has come."""
        if self._state is None:
            raise PeerRefused("no terms have been proposed")
        return self._state

    def answer(self, request: bytes) -> bytes:
        """Look at the terms, or answer a broadcast."""
        kind, _, _ = unpack(request, "opening", "broadcast")
        if kind == "opening":
            return self._open(request)
        state = self.state
        if not self._bound:
            # A run that cannot be paid binds nothing.
            assert self.spending is not None
            with self._own_affairs():
                self.spending.staged_bytes(state.terms.to_bytes)
            self._folder.keep("opening", self._opening)
            self._bound = True
            self._log("resumed the run" if state.step else "joined the run")
        return state.answer(Broadcast.from_bytes(request)).to_bytes()

    def end(self, run: str) -> bytes:
        """Close the run in the ledger, and never answer in it again."""
        if self.state.terms.run != run:
            raise PeerRefused("the message ends another run")
        assert self.spending is not None
        with self._own_affairs():
            self.spending.settle()
        self._folder.put("ended", run.encode())
        return control("ready", run=run)

    def reason(self, error: HushsumError) -> str:
        """Broken rules in words, other failures without detail."""
        if isinstance(error, PeerRefused | FileRefused):
            return str(error)
        return "this owner does not offer what the terms request"

    def _own_affairs(self) -> Any:
        reason = "this owner's budget does not suffice for the terms"
        return own_affairs("this owner's ledger or state does not allow this run", BudgetExhausted=reason)

    def _open(self, data: bytes) -> bytes:
        opening = Opening.from_bytes(data)
        bound = self._folder.get("opening")
        if bound is not None and bound != data:
            raise PeerRefused("this owner takes part in another run, or in this one on other terms")
        if self._state is None or self._opening != data:
            self._state, self._opening = self._begin(opening), data
        return control("ready", run=opening.terms.run)

    def _begin(self, opening: Opening) -> OwnerState:
        """The state for terms that are acceptable; nothing is bound or paid yet."""
        terms = opening.terms
        if self._me not in terms.owners:
            raise PeerRefused("the terms do not name this owner's fingerprint")
        if terms.rho is None:
            raise PeerRefused(f"the rule {terms.rule} keeps no promise to this owner's records")
        if self._cap is not None and (terms.cap is None or terms.cap > self._cap):
            # A cap lets one record displace another, so the noise must have been made for it.
            limit = "this owner limits the points that it sends, and the terms must contain the limit: "
            raise PeerRefused((limit, Argument("cap", self._cap)))
        features = self._features(opening)
        points = self._offer.choose(opening.compared)
        extra = self._offer.choose(opening.carried) if opening.carried else None
        if points.shape[1] != terms.features.dim:
            raise PeerRefused("the columns of the terms have another width here")
        state = OwnerState(
            self._me,
            points,
            terms,
            extra=extra,
            features=features,
            store=lambda saved: self._folder.put("state", saved),
        )
        with self._own_affairs():
            kept = self._folder.get("state")
            if kept is not None:
                state.restore(kept)
            self.spending = self._spending_of(terms)
            self.spending.afford()
        return state

    def _features(self, opening: Opening) -> SummaryFeatures | None:
        """The features under the owners' secret; an owner that has one sends hashes or nothing."""
        if not opening.terms.hashed:
            if self._secret is not None:
                rule = "this owner sends hashes only, and the terms request points: "
                raise PeerRefused((rule, NameOf("hashes")))
            return None
        if self._secret is None:
            raise PeerRefused("the terms request hashes, and this owner was given no secret to make them")
        if opening.secret_check != self._secret.check:
            raise PeerRefused("the validation set was hashed under another secret than this owner's")
        return self._secret.features(opening.terms.features)


@request
class OwnerRequest:
    """What an owner offers, and its own limits, which hold for every request of a curator."""

    party: PartySpec
    columns: tuple[str, ...] | None = setting(
        None, "Columns that may be sent, separated by commas; default: all.", metavar="NAMES"
    )
    cap: int | None = setting(None, "Maximum number of points that are sent in total.", at_least=1)
    hashes: str | None = setting(
        None, "Send hashes under this secret instead of points, or nothing.", metavar="FILE"
    )
    cells: CellFormat = PLAIN
    ledger: LedgerOptions = NO_LEDGER
    delta: float | None = setting(
        None, "Debit ε at this δ from the ledger; default: debit ρ.", group="Ledger", above=0, below=1
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class TookPart(Result):
    """How a run ended for an owner; ``points_sent`` is for its own eyes."""

    run: str
    rule: str
    points_sent: int
    claim: Claim
    idempotency_key: str | None


def offer_records(
    request: OwnerRequest, file: str, curator: Address, *, patience: Patience, log: Log
) -> TookPart:
    """Take part in a curator's run until it ends; resumes after a crash with the same state.

    Raises
    ------
    PeerLost
        if no curator came in time.
    """
    identity = Identity.load(request.party.key)
    secret = None if request.hashes is None else HashSecret.load(request.hashes)
    ledger = request.ledger.given()
    records = read_columns(file, request.columns, request.cells)
    with StateFolder(request.party.state or f"{file}.summarize") as folder:
        machine = OwnerMachine(
            identity,
            records,
            folder,
            cap=request.cap,
            secret=secret,
            spending=partial(
                owner_spending, ledger=ledger, fingerprint=identity.fingerprint, delta=request.delta
            ),
            log=log,
        )
        Participant(identity, curator, machine, patience=patience, log=log).take_part()
    state, spending = machine.state, machine.spending
    assert spending is not None
    return TookPart(state.terms.run, state.terms.rule, state.sent, spending.claim, spending.key)
