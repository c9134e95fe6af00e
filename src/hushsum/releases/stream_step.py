"""The step of a stream that a released function shows, and how its noise goes with that of other steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hushsum.errors import UsageError
from hushsum.privacy.claim import PERSON, Claim, Relation
from hushsum.privacy.integer_noise import IntegerNoise
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.over_time.stream_noise import StreamNoise, StreamUnit, spent_epsilon, spent_rho

if TYPE_CHECKING:
    from hushsum.bases.base import Basis
    from hushsum.releases.noisy_table import NoisyTable

_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_CLOSE = 1e-5
"""How far a stored variance may be from one that is computed again, on another machine perhaps."""


@dataclass(frozen=True, slots=True)
class StreamStep:
    """Which step of which stream a function shows; public.

    Attributes
    ----------
    stream : str
        The name of the stream, 32 hexadecimal digits: functions of one stream have it in common.
    step, steps : int
        The number of the step, from 1, and the horizon.
    removals : bool
        Whether records may be removed again.
    noise : StreamNoise
        Strategy, view, and the noise of every output.
    """

    stream: str
    step: int
    removals: bool
    noise: StreamNoise

    @property
    def steps(self) -> int:
        """How many steps the claim covers."""
        return self.noise.steps

    def as_json(self) -> dict[str, Any]:
        """For a file's header."""
        return {
            "stream": self.stream,
            "step": self.step,
            "removals": self.removals,
            "noise": self.noise.as_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamStep:
        """The step of a file's header; ValueError if there is none like it."""
        if set(data) != {"stream", "step", "removals", "noise"}:
            raise ValueError("stream")
        found = cls(data["stream"], data["step"], data["removals"], StreamNoise.from_json(data["noise"]))
        if not isinstance(found.stream, str) or not _ID.fullmatch(found.stream):
            raise ValueError("stream")
        if type(found.step) is not int or not 1 <= found.step <= found.steps:
            raise ValueError("step")
        if type(found.removals) is not bool:
            raise ValueError("removals")
        return found

    def keeps(self, claim: Claim, basis: Basis, table: IntegerNoise, count: IntegerNoise) -> bool:
        """Whether the noise of all steps keeps a claim, and that of this one is what it is said to be.

        Pure ε and ρ add up exactly; for ε and δ only the kind of noise is looked at here.
        """
        shown = self.noise.at(self.step)
        for stated, found in zip((table, count), shown, strict=True):
            if stated.mechanism != found.mechanism or Mechanism.of(stated.mechanism) != claim.mechanism:
                return False
            if abs(stated.variance - found.variance) > _CLOSE * found.variance:
                return False
        unit = stream_unit(basis, claim.unit, claim.records_per_unit, claim.relation, removals=self.removals)
        if claim.promise.pure:
            assert claim.promise.epsilon is not None
            return self.noise.intervals and spent_epsilon(self.noise, unit) <= claim.promise.epsilon
        if self.noise.intervals:
            return False
        return claim.promise.rho is None or spent_rho(self.noise, unit) <= claim.promise.rho


def stream_unit(basis: Basis, unit: str, per_unit: int, relation: Relation, *, removals: bool) -> StreamUnit:
    """What one unit can change in a stream of tables."""
    rows, width = basis.shape
    return StreamUnit(
        record={each: basis.sensitivity(each) for each in Relation},
        relation=relation,
        per_unit=per_unit if unit == PERSON else None,
        removals=removals,
        cells=rows * width,
    )


@dataclass(frozen=True, slots=True)
class StepCovariance:
    """How the noise of two functions of one stream goes together: in each cell, and in the numbers of
    records.
    """

    cell: float
    count: float


def step_covariance(first: NoisyTable, second: NoisyTable) -> StepCovariance:
    """The covariance of the noise that two steps of one stream have in the same cell; other cells are
    independent.

    Steps share the draws of all steps before, so a difference of two steps has less noise than two
    independent releases would: Var(f − g) = Var f + Var g − 2·Cov(f, g), cell by cell.

    Raises
    ------
    UsageError
        if they are not functions of one stream.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10)
    >>> stream = hs.stream(tally, steps=12, rho=0.5)
    >>> first, second = stream.add([[0.5]]).step(), stream.step()
    >>> 0.4 < step_covariance(first, second).cell / first.noise.variance < 1.0
    True
    """
    one, other = first.stream_step, second.stream_step
    if one is None or other is None or one.stream != other.stream or one.noise != other.noise:
        raise UsageError(rule="both functions must be steps of one stream", remedy="give two of its files")
    gain = one.noise.correlation_gain(one.step, other.step)
    return StepCovariance(one.noise.table.variance * gain, one.noise.count.variance * gain)
