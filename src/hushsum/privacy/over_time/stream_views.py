"""Which sum over the steps a stream shows: all of them, the last few, or all with weights that decay."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hushsum._types import Floats
from hushsum.errors import Parameter, UsageError, shown
from hushsum.files.encoding import stored_rational
from hushsum.privacy.claim import exact


@dataclass(frozen=True, slots=True)
class View:
    """A public linear function of the steps so far; every view of a stream is post-processing.

    Parameters
    ----------
    window : int, optional
        The sum of the last ``window`` steps alone.
    decay : Fraction, optional
        The sum of all steps, each with ``decay`` times the weight of the next one.

    Examples
    --------
    >>> View(window=2).series(np.ones(4))
    array([1., 2., 2., 2.])
    >>> View(decay=Fraction(1, 2)).series(np.array([1.0, 0.0, 0.0]))
    array([1.  , 0.5 , 0.25])
    """

    window: int | None = None
    decay: Fraction | None = None

    @classmethod
    def of(cls, window: object = None, decay: object = None) -> View:
        """Check the two parameters of a stream; at most one of them may be given.

        Raises
        ------
        UsageError
            for both, a window below 1, or a decay that is not between 0 and 1.
        """
        if window is not None and decay is not None:
            raise UsageError(
                parameter="window", rule=("or ", Parameter("decay"), " may be given, not both"), got="both"
            )
        if window is not None and (type(window) is not int or window < 1):
            raise UsageError(parameter="window", rule="must be an integer of at least 1", got=shown(window))
        if decay is None:
            return cls(window if isinstance(window, int) else None)
        rate = exact("decay", decay)  # type: ignore[arg-type]  # which refuses what is not a number
        if not 0 < rate < 1 or rate.denominator > 10**9:
            raise UsageError(
                parameter="decay",
                rule="must lie between 0 and 1, with nine decimals at most",
                got=shown(decay),
                remedy="0.97 halves a step's weight in 23 steps",
            )
        return cls(decay=rate)

    def series(self, increments: Floats) -> Floats:
        """The coefficients of the view of a series: of its sums, windows or decayed sums."""
        if self.decay is not None:
            rate, total = float(self.decay), 0.0
            result = np.empty(len(increments))
            for i, each in enumerate(increments.tolist()):
                total = rate * total + each
                result[i] = total
            return result
        sums: Floats = np.cumsum(increments)
        if self.window is not None and self.window < len(sums):
            sums[self.window :] -= np.cumsum(increments[: -self.window])
        return sums

    def kept(self, steps: int) -> int:
        """How many past increments must be remembered: those of a window, which are to be forgotten."""
        return 0 if self.window is None or self.window >= steps else self.window

    def in_words(self) -> str:
        """What a function of the stream is about.

        >>> View(window=30).in_words()
        'the last 30 steps'
        """
        if self.window is not None:
            return f"the last {self.window} steps" if self.window > 1 else "the last step"
        if self.decay is not None:
            return f"all steps, each with {float(self.decay):g} of the weight of the next one"
        return "all steps so far"

    def as_json(self) -> dict[str, Any]:
        """The view for a file's header."""
        return {"window": self.window, "decay": None if self.decay is None else str(self.decay)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> View:
        """The view of a file's header; ValueError if there is none like it."""
        if set(data) != {"window", "decay"}:
            raise ValueError("view")
        decay = None if data["decay"] is None else stored_rational(data["decay"])
        try:
            return cls.of(data["window"], decay)
        except UsageError:
            raise ValueError("view") from None
