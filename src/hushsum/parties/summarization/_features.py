"""The features that points are compared by, and the secret seed of hashes."""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushsum import _native
from hushsum._types import Integers
from hushsum.errors import FileRefused, UsageError
from hushsum.kernels import GaussianKernel, positive_integer, row_words, uniforms
from hushsum.parties._tls import read_secret, write_secret
from hushsum.tables import AMPLITUDE, LENGTH

_ROWS_AT_A_TIME = 2048
PUBLIC_SEED = 0
"""What stands in for a secret seed wherever the curator can read."""

MAX_WIDTH = 4096
"""With more coordinates a gain would not be an exact integer in double precision."""

Hashes = NDArray[np.int16]


@dataclass(frozen=True)
class SummaryFeatures:
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

    def as_json(self) -> dict[str, Any]:
        """The parameters as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SummaryFeatures:
        """The features that `as_json` described."""
        if type(data["paired"]) is not bool:
            raise ValueError("paired")
        return cls(**data)

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
