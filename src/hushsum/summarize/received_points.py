"""The points that the curator has been sent: who sent them, and which are in the summary; confidential."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers
from hushsum.errors import DataRefused, FileRefused
from hushsum.summarize.features import Hashes
from hushsum.summarize.messages import Answer, RunTerms


class ReceivedPoints:
    """Points with their hashes, gains and owners, in the order in which they came."""

    def __init__(self, terms: RunTerms) -> None:
        self._terms = terms
        columns = terms.features.width if terms.hashed else terms.features.dim
        self.points: Floats = np.empty((0, columns))
        self.extra: Floats = np.empty((0, terms.extra))
        self.hashes: Hashes = np.empty((0, terms.features.width), np.int16)
        self.owners: Integers = np.empty(0, np.int64)
        self.rounds: Integers = np.empty(0, np.int64)
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

    def summary(self) -> Integers:
        """The places of the points in the summary."""
        return np.flatnonzero(self._chosen)

    def pool(self) -> Integers:
        """The places of the points that are not."""
        return np.flatnonzero(~self._chosen)

    def check(self, answer: Answer, *, most: int | None) -> Hashes:
        """The hashes of an answer's points; FileRefused if they break the rule."""
        points = answer.points
        if points.shape[1:] != self.points.shape[1:] or answer.extra.shape != (
            len(points),
            self._terms.extra,
        ):
            raise FileRefused(
                rule="an answer's points have the wrong number of columns", remedy="check the owner"
            )
        if most is not None and len(points) > most:
            raise FileRefused(rule="an answer has more points than were requested", remedy="check the owner")
        cap = self._terms.cap
        number = self._terms.owners.index(answer.owner)
        if cap is not None and int((self.owners == number).sum()) + len(points) > cap:
            raise FileRefused(rule="an owner sent more points than its cap", remedy="check the owner")
        if not len(points):
            return np.empty((0, self._terms.features.width), np.int16)
        if self._terms.hashed:
            return self._checked_hashes(points)
        try:
            return self._terms.features.hashes(points)
        except DataRefused:
            raise FileRefused(
                rule="an answer holds a number that is not finite", remedy="check the owner"
            ) from None

    def add(self, answer: Answer, hashes: Hashes, gains: Integers, number: int) -> None:
        """Keep the points of an answer that was checked."""
        size = len(hashes)
        owner = self._terms.owners.index(answer.owner)
        self.points = np.concatenate([self.points, answer.points])
        self.extra = np.concatenate([self.extra, answer.extra])
        self.hashes = np.concatenate([self.hashes, hashes])
        self.owners = np.concatenate([self.owners, np.full(size, owner)])
        self.rounds = np.concatenate([self.rounds, np.full(size, number)])
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
        named = {name: getattr(self, name) for name in ("points", "extra", "owners", "rounds", "gains")}
        return {**named, "flags": flags}

    def resume(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from a snapshot; hashes are made again."""
        for name in ("points", "extra", "owners", "rounds", "gains"):
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
            raise FileRefused(
                rule="an answer's hashes must be integers, and not too long", remedy="check the owner"
            )
        return whole.astype(np.int16)
