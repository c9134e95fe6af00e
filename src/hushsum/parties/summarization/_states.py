"""The states of a summarization: the consumer's noisy target; the curator, which broadcasts and
adds up answers; and an owner, which sends points, bids for them and delivers them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError, DataRefused, FileRefused, UsageError
from hushsum.files import pack, unpack
from hushsum.parties._messages import (
    COUNT,
    FLAG,
    RATIONAL,
    TEXT,
    TEXTS,
    VECTOR,
    Field,
    Message,
    message_field,
)
from hushsum.privacy import flip_coins, random_places, release_noise

from ._features import MAX_GAIN, PUBLIC_SEED, Hashes, SummaryFeatures, best_first, scores
from ._messages import BID, CERTAIN, DELIVER, FEATURES, FRESH, PHASES, THRESHOLD, Answer, Broadcast, RunTerms
from ._noisy_sums import NoisySums, coefficients_of, count_step, sum_variance, target_variance

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

    cells: Annotated[Integers, VECTOR]
    step: Annotated[int, COUNT]
    variance: Annotated[Fraction, RATIONAL]
    rho: Annotated[Fraction, RATIONAL]
    secure: Annotated[bool, FLAG] = True

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
    columns: Annotated[tuple[str, ...], TEXTS]
    secret_check: Annotated[str, TEXT]
    target: Annotated[NoisyTarget, message_field(NoisyTarget)]

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
    owner's ``cap`` holds whatever is requested.

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
    cap : int, optional
        The most points that may ever leave: terms that allow more are refused. (A cap that only the owner
        knew would change what the claim rests on.)
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
        cap: int | None = None,
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
        if cap is not None and (terms.cap is None or terms.cap > cap):
            raise UsageError(
                "the terms allow more points of one owner than this owner's cap",
                remedy="agree on a smaller cap, since a cap is part of what is claimed",
            )
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
