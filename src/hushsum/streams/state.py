"""What a stream keeps between its steps: exact sums, which are secret, and what was read from its outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.privacy.over_time.stream_noise import StreamNoise
from hushsum.tally.increments import take_increment
from hushsum.tally.tally import Tally


@dataclass(slots=True, eq=False, repr=False)
class StreamState:
    """The tables of a stream. All have one number per cell and, at the end, one for the number of records.

    Attributes
    ----------
    tally : Tally
        What was counted since the last step, and the caps on persons over all steps.
    removed : int
        How many of the records since the last step were removals.
    secret : array of shape (secret tables, cells + 1)
        Exact sums of earlier steps.
    public : array of shape (public tables, cells + 1)
        What reading the outputs keeps. It is a function of the outputs alone.
    shown : array of shape (cells + 1,)
        What the last step shows.
    kept : array of shape (window, cells + 1)
        The increments of the last steps, for windows; a ring.
    step : int
        How many steps there were.
    notes : dict
        What those who run the stream remember with it, as JSON; secret.
    """

    tally: Tally
    removed: int
    secret: Integers
    public: Floats
    shown: Floats
    kept: Floats
    step: int = 0
    notes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def empty(cls, tally: Tally, noise: StreamNoise) -> StreamState:
        """The state before the first step."""
        rows, width = tally.basis.shape
        size, strategy = rows * width + 1, noise.strategy
        return cls(
            tally=tally,
            removed=0,
            secret=np.zeros((strategy.secret_tables, size), np.int64),
            public=np.zeros((strategy.public_tables, size)),
            shown=np.zeros(size),
            kept=np.zeros((noise.view.kept(noise.steps), size)),
        )

    def advance(self, noise: StreamNoise, *, insecure_noise_seed: int | None, threads: int) -> None:
        """One step: new noise, and what it shows. Nothing has left this process before `step` has grown."""
        table, count = take_increment(self.tally)
        increment = np.append(table, np.int64(count - self.removed))
        self.removed = 0
        step = self.step + 1
        output = noise.strategy.advance(self.secret, increment, step)
        noise.add_to(output, step, insecure_noise_seed=insecure_noise_seed, threads=threads)
        self._show(noise.strategy.read(self.public, output, step), noise)
        self.step = step

    def _show(self, growth: Floats, noise: StreamNoise) -> None:
        if noise.view.decay is not None:
            self.shown *= float(noise.view.decay)
        self.shown += growth
        if len(self.kept):
            place = self.step % len(self.kept)
            self.shown -= self.kept[place]
            self.kept[place] = growth
