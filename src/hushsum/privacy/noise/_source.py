"""Where the random bits of one release come from, and uniform integers and real numbers made of them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from fractions import Fraction
from types import TracebackType
from typing import Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._native import StreamKey, extension_nonce
from hushsum.errors import SecretRefused, UsageError

_MOST_WORDS = 1 << 34
_MOST_DRAWS = 1 << 24
_ONE_RELEASE = "a source serves one release: make a fresh one"


_DRAWN: Final = threading.Event()


def noise_was_drawn() -> bool:
    """Whether this process has drawn noise for any release."""
    return _DRAWN.is_set()


class NoiseSource:
    """The key of one release, and the streams that its draws take from it.

    ``with source:`` opens the release; the key is wiped at the end of the block, and the source refuses a
    second one. Every draw (a table, a count) gets a ChaCha20 nonce of its own, so no keystream is used
    twice. A source refuses to work in a child process, to be copied and to be pickled: equal noise on two
    tallies would reveal their difference. A restored snapshot of a virtual machine cannot be recognised:
    make the source after the restart.

    Examples
    --------
    >>> with NoiseSource.insecure(7) as source:
    ...     source
    NoiseSource(secure=False)
    """

    __slots__ = ("__weakref__", "_closed", "_draws", "_key", "_lock", "_opened", "_secure")

    def __init__(self, key: StreamKey, *, secure: bool) -> None:
        self._key = key
        self._secure = secure
        self._draws = 0
        self._opened = False
        self._closed = False
        self._lock = threading.Lock()

    @classmethod
    def for_release(cls, insecure_noise_seed: int | None) -> Self:
        """A fresh source for one release; with a seed, one that can be repeated, for tests."""
        return cls.fresh() if insecure_noise_seed is None else cls.insecure(insecure_noise_seed)

    @classmethod
    def fresh(cls) -> Self:
        """A source with 256 new bits of the operating system's generator; they never leave native memory."""
        return cls(StreamKey(), secure=True)

    @classmethod
    def insecure(cls, seed: int) -> Self:
        """A source that everyone who knows ``seed`` can repeat: for tests, worthless for privacy.

        Raises
        ------
        UsageError
            If ``seed`` is negative.
        """
        if seed < 0:
            remedy = "any integer from 0 will do"
            raise UsageError("seed", "must not be negative", got=f"{seed}", remedy=remedy)
        digest = hashlib.sha256(b"hushsum insecure noise seed " + str(seed).encode("ascii")).digest()
        return cls(StreamKey(digest), secure=False)

    @property
    def secure(self) -> bool:
        """Whether the key came from the operating system; a release from another one must be marked."""
        return self._secure

    def __enter__(self) -> Self:
        with self._lock:
            self._refuse_if_unusable()
            if self._opened or self._draws:
                raise SecretRefused("noise source already used", remedy=_ONE_RELEASE)
            self._opened = True
        _DRAWN.set()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wipe the key; every later draw is refused."""
        with self._lock:
            self._closed = True
            self._key.clear()

    def stream(self) -> NoiseStream:
        """The stream of the next draw.

        Raises
        ------
        SecretRefused
            If the release is over or the process is a child of the one that made the source.
        """
        with self._lock:
            self._refuse_if_unusable()
            if self._draws == _MOST_DRAWS:
                rule = f"noise source exhausted after {_MOST_DRAWS} draws"
                raise SecretRefused(rule, remedy="split the release")
            self._draws += 1
            return NoiseStream(self._key, self._draws - 1)

    def _refuse_if_unusable(self) -> None:
        if self._closed:
            raise SecretRefused("noise source closed", remedy=_ONE_RELEASE)
        if not self._key.usable:
            self._key.clear()
            rule = "noise source made in another process"
            raise SecretRefused(rule, remedy="make a fresh one after the fork")

    def __repr__(self) -> str:
        return f"NoiseSource(secure={self._secure})"

    def _refuse_copy(self, *_: object) -> NoReturn:
        rule = "noise source cannot be copied or pickled"
        raise SecretRefused(rule, remedy="make a fresh one where it is needed")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse_copy


class NoiseStream:
    """The bits of one draw: a key that cannot be read and the number of the draw."""

    __slots__ = ("draw", "key")

    def __init__(self, key: StreamKey, draw: int) -> None:
        self.key = key
        self.draw = draw

    def more_bits(self, index: int, *, acceptance: bool = False) -> Callable[[int], int]:
        """A function that gives the i-th further 64 bits of the value at ``index``."""
        nonce = extension_nonce(self.draw, acceptance, index)

        def word(i: int) -> int:
            block = self.key.keystream(*nonce, counter=i // 8, blocks=1)
            return int.from_bytes(block[i % 8 * 8 :][:8], "little")

        return word

    def words(self, number: int) -> NDArray[np.uint64]:
        """So many times 64 bits, of a stream from which nothing else is taken."""
        nonce = extension_nonce(self.draw, False, 0)
        block = self.key.keystream(*nonce, counter=0, blocks=-(-number // 8))
        return np.frombuffer(block, "<u8", count=number)

    def __repr__(self) -> str:
        return "NoiseStream()"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused("noise stream cannot be copied or pickled")


def check_parameter(name: str, value: Fraction, smallest: Fraction, largest: Fraction) -> Fraction:
    """The parameter as a Fraction within its range."""
    if not isinstance(value, (int, Fraction)):
        raise UsageError(
            name, "must be a Fraction or an integer", got=type(value).__name__, remedy="use Fraction(...)"
        )
    if not smallest <= value <= largest:
        # Not as a float: a number so large has none.
        got, other = ("less", "smaller") if value < smallest else ("more", "larger")
        rule = f"the {name} of noise must be from {float(smallest):.3g} to {float(largest):.3g}"
        raise UsageError(rule, got=got, remedy=f"choose a {other} epsilon or rho")
    return Fraction(value)


def check_draw(size: int, threads: int) -> None:
    """Refuse a negative size and fewer than one thread."""
    if size < 0:
        raise UsageError("size", "must not be negative", got=f"{size}")
    if threads < 1:
        raise UsageError("threads", "must be at least 1", got=f"{threads}")


def words_of(more: Callable[[int], int]) -> Callable[[], int]:
    """The words ``more(0), more(1), …``, one per call."""
    count = iter(range(_MOST_WORDS))
    return lambda: more(next(count))


def below(limit: int, word: Callable[[], int]) -> int:
    """A uniform integer from 0 to ``limit − 1``, by rejection; ``limit`` is from 1 to 2⁶³.

    >>> below(10, iter([2**64 - 1, 123]).__next__)
    3
    """
    fair = (1 << 64) // limit * limit
    while (value := word()) >= fair:
        pass
    return value % limit


def independent_places(size: int, places: int, source: NoiseSource) -> NDArray[np.int64]:
    """A place from 0 to ``places − 1`` for each of ``size`` things, independent and alike in distribution.

    Exactly uniform: a word that would favour the first places is drawn again.

    >>> independent_places(4, 10, NoiseSource.insecure(1)).shape
    (4,)
    """
    stream = source.stream()
    # A nonce that no other draw with this key uses: choices take theirs with index 0, or without the mark.
    nonce = extension_nonce(stream.draw, True, 1)
    fair = (1 << 64) // places * places
    words = np.empty(size, np.uint64)
    missing, used = np.arange(size), 0
    while missing.size:
        blocks = -(-missing.size // 8)
        data = stream.key.keystream(*nonce, counter=used, blocks=blocks)
        words[missing] = np.frombuffer(data, "<u8", count=missing.size)
        missing, used = missing[words[missing] > np.uint64(fair - 1)], used + blocks
    return (words % np.uint64(places)).astype(np.int64)


class LazyUniform:
    """A real uniform U on [0, 1) of which only as many bits are drawn as a decision needs.

    It is known to lie in ``[prefix, prefix + 1) / 2^bits``, which each `refine` halves 64 times.

    Parameters
    ----------
    prefix, bits : int
        The first ``bits`` binary digits of U.
    more : callable
        ``more(i)`` gives the i-th further group of 64 digits as an integer; it is called with i = 0, 1, 2, …
        in order.
    """

    __slots__ = ("_more", "_requested", "bits", "prefix")

    def __init__(self, prefix: int, bits: int, more: Callable[[int], int]) -> None:
        self.prefix = prefix
        self.bits = bits
        self._more = more
        self._requested = 0

    def refine(self) -> None:
        """Draw 64 more digits."""
        self.prefix = self.prefix << 64 | self._more(self._requested)
        self.bits += 64
        self._requested += 1

    def surely_below(self, low: int, bits: int) -> bool:
        """Whether every completion is below every number from ``low / 2^bits`` on; ``bits >= self.bits``."""
        return (self.prefix + 1) << (bits - self.bits) <= low

    def surely_above(self, high: int, bits: int) -> bool:
        """Whether no completion is below a number up to ``high / 2^bits``; ``bits >= self.bits``."""
        return self.prefix << (bits - self.bits) >= high

    def below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """Whether U lies below a number that ``bounds(bits)`` encloses, in units of 2⁻ᵇⁱᵗˢ: U is refined
        until the bounds leave one answer.
        """
        while True:
            bits = self.bits + 64
            low, high = bounds(bits)
            if self.surely_below(low, bits):
                return True
            if self.surely_above(high, bits):
                return False
            self.refine()
