"""Drift over the steps of a stream: the step from which the records come from another distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hushsum._html import Described
from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.releases import NoisyTable, Points

from ._difference import RecordModel, check_settings, fit_records, public_points
from ._two_sample_test import Coordinates, filtered_test

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Drift", "DriftCheck", "drift"]

_POINTS: Final = 128
# Estimated numbers of records below which a period is not compared: its mean kernel values are noise.
_FEWEST_RECORDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """At a step: the strongest comparison of the newest records with those before.

    ``step`` is the step, ``since`` the first step of the newer records, and ``p_value`` that comparison's,
    before the number of comparisons is allowed for. None where there were too few records to compare. From
    ``threshold`` on it is an alarm.
    """

    step: int
    since: int | None
    p_value: float | None
    threshold: float

    @property
    def alarms(self) -> bool:
        """Whether it raises an alarm."""
        return self.p_value is not None and self.p_value <= self.threshold


@dataclass(frozen=True, eq=False)
class Drift(Described):
    """Which step the distribution has changed from, if it has; made by :func:`hushsum.drift`. Nothing is
    secret.

    Attributes
    ----------
    checks : tuple of DriftCheck
        One for each step but the first.
    false_alarm : float
        The probability of any alarm over the whole horizon, or for ever without one, if the distribution
        never changes.
    comparisons : int or None
        How many comparisons the horizon has; each may raise an alarm with probability
        false_alarm/comparisons. None without a horizon.
    """

    checks: tuple[DriftCheck, ...]
    false_alarm: float
    comparisons: int | None

    @cached_property
    def alarm(self) -> DriftCheck | None:
        """The first check that raises an alarm; None if there is none."""
        return next((each for each in self.checks if each.alarms), None)

    @property
    def detected_at(self) -> int | None:
        """The step at which drift was detected; None if it was not."""
        return None if self.alarm is None else self.alarm.step

    @property
    def since(self) -> int | None:
        """The step from which the distribution differs, by the comparison that detected it; None if there is
        none.
        """
        return None if self.alarm is None else self.alarm.since

    def __repr__(self) -> str:
        return f"Drift(detected_at={self.detected_at}, since={self.since}, false_alarm={self.false_alarm:g})"

    def describe(self) -> list[tuple[str, str]]:
        """Names and values for people."""
        said = "none detected"
        if self.alarm is not None:
            said = f"detected at step {self.detected_at}: records from step {self.since} on are different"
        steps = [each.step for each in self.checks]
        over = "over all steps there will ever be"
        if self.comparisons is not None:
            over = f"over the whole horizon, {self.comparisons} comparisons"
        return [
            ("drift", said),
            ("steps", f"{steps[0]} to {steps[-1]}" if steps else "none"),
            ("false alarms", f"{self.false_alarm:g} {over}"),
        ]

    def as_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "kind": "drift",
            "detected_at": self.detected_at,
            "since": self.since,
            "false_alarm": self.false_alarm,
            "comparisons": self.comparisons,
            "checks": [asdict(each) for each in self.checks],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the p-value of every step, and the threshold of an alarm."""
        from hushsum.plotting import BLUE, INK, VERMILION, new_figure

        if ax is None:
            caption = " ".join(f"{name}: {value}." for name, value in self.describe())
            ax = new_figure(title="Drift over the steps of a stream", caption=caption, pyplot=True)[1]
        known = [(each.step, max(each.p_value, 1e-300)) for each in self.checks if each.p_value is not None]
        if known:
            ax.semilogy(*zip(*known, strict=True), color=BLUE, marker="o", markersize=3, linewidth=1.2)
        thresholds = [(each.step, each.threshold) for each in self.checks]
        ax.step(
            *zip(*thresholds, strict=True),
            where="mid",
            color=VERMILION,
            linestyle="dashed",
            linewidth=1.0,
            label="alarm",
        )
        ax.set_xlabel("step", color=INK)
        ax.set_ylabel("p-value of the strongest comparison", color=INK)
        ax.legend(frameon=False, fontsize=9, labelcolor=INK)
        return ax


def drift(
    steps: Sequence[NoisyTable], *, false_alarm: float = 0.01, at: object = None, cluster_size: float = 1.0
) -> Drift:
    """Detect from which step of a stream on the records come from another distribution.

    Post-processing: it spends nothing. Call it with the steps that have been released so far, as often as you
    like: the probability of any false alarm over the whole horizon of the stream, or for ever if it has none,
    stays below ``false_alarm``, as long as every call begins with the same step and leaves none of the later
    ones out.

    At every step the records of the last 1, 2, 4, 8, … periods are compared with all before them, as
    :func:`hushsum.compare` does, with the covariance of the noise of the steps of one stream.

    Parameters
    ----------
    steps : sequence of released functions
        Steps of one stream in their order, at least two. The stream shows all steps so far, or a window; of a
        window the steps must be at least that far apart, so that no record is in two of them.
    false_alarm : float, default 0.01
        The probability of any false alarm over the horizon, or over all steps there will ever be.
    at : queries, optional
        2 to 1000 public points. Default: chosen from the first step.
    cluster_size : float, default 1
        The average number of correlated records, such as those of one person.

    Raises
    ------
    UsageError
        if the functions are not steps of one stream in order, or the stream decays.

    Notes
    -----
    The threshold is Bonferroni's over all comparisons of the horizon. Without a horizon the comparisons of
    the i-th step after the first share the part 1/log₂(i + 1) − 1/log₂(i + 2) of ``false_alarm``: these parts
    add up to 1, and fall so slowly that late changes are found, too. Records of different steps are assumed
    to be independent draws. Counts of records that change from step to step are no drift: only their
    distribution is.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> rng = np.random.default_rng(0)
    >>> tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.5), bounds=(-4, 4))
    >>> stream = hs.stream(tally, horizon=12, epsilon=1.0, delta=1e-6, insecure_noise_seed=1)  # for this page
    >>> steps = [stream.add(rng.normal(t >= 6, 1.0, (2000, 1))).step() for t in range(12)]
    >>> hs.drift(steps).since
    7
    """
    check_settings("false_alarm", false_alarm, cluster_size, example="0.01")
    numbers = _checked(steps)
    series = _Series.of(steps, numbers, public_points(steps[:1], at, _POINTS), cluster_size)
    first = steps[0].stream_step
    assert first is not None
    comparisons = None
    if first.horizon is not None:
        # A period for each step that the horizon still has, were none left out.
        comparisons = max(sum(_windows(i) for i in range(1, first.horizon - first.step + 1)), 1)
    checks = []
    for i in range(1, len(steps)):
        part = _part(numbers[i] - numbers[0]) / _windows(i) if comparisons is None else 1.0 / comparisons
        checks.append(series.check(i, false_alarm * part))
    return Drift(tuple(checks), false_alarm, comparisons)


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """The periods between steps: kernel sums and numbers of records of each, and the covariance of their
    noise.

    ``table`` and ``count`` are the covariances between periods of the noise in one cell, and in the number of
    records; ``shape`` the covariance of answers for noise of variance 1 in every cell, so that the covariance
    of the sums of periods i and j is table[i, j]·shape.
    """

    numbers: tuple[int, ...]
    sums: Floats
    counts: Floats
    table: Floats
    count: Floats
    shape: Floats
    slope: float
    answers: Floats
    coordinates: Coordinates
    moves: Floats | None
    cluster_size: float

    @classmethod
    def of(
        cls, steps: Sequence[NoisyTable], numbers: tuple[int, ...], points: Points, cluster_size: float
    ) -> _Series:
        first = steps[0]
        batch = first.basis.prepare_queries(points)
        # All that came so far, or windows that do not overlap.
        size, stream = len(steps), first.stream_step
        assert stream is not None
        gains = stream.noise.covariances(numbers)
        cell, count = stream.noise.table.variance * gains, stream.noise.count_variance * gains
        # Rounding of the cells of a step is its own.
        np.fill_diagonal(cell, np.maximum(np.diag(cell), [each.cell_variance for each in steps]))
        change = np.eye(size)
        if stream.noise.view.window is None:
            change -= np.eye(size, k=-1)
        # The noisy counts alone: those of tables are noisier, and would go with the cells.
        totals = np.array([float(each.noisy_count) for each in steps])
        raw = np.stack([_without_count(each, points) for each in steps])
        coordinates = Coordinates.of_table(first, points)
        if coordinates is None:
            raise UsageError(
                "drift needs a kernel whose matrices have no negative eigenvalues",
                got=f"the {first.kernel.name} kernel",
                remedy="compare two releases with hs.compare",
            )
        return cls(
            numbers,
            change @ raw,
            change @ totals,
            change @ cell @ change.T,
            change @ count @ change.T,
            first.reading.noise_covariance(batch),
            first.number_slope,
            first.record_answers(points, points),
            coordinates,
            coordinates.moves(first.__call__, first.kernel, points),
            cluster_size,
        )

    def check(self, last: int, threshold: float) -> DriftCheck:
        """The strongest of the comparisons at one step."""
        step, model = self.numbers[last], self._model(last)
        starts = [last + 1 - 2**power for power in range(_windows(last))]
        found = [(self._p_value(start, last, model), start) for start in starts]
        known = [(p_value, start) for p_value, start in found if p_value is not None]
        if not known:
            return DriftCheck(step, None, None, threshold)
        p_value, start = min(known, key=lambda each: each[0])
        return DriftCheck(step, self.numbers[start - 1] + 1, p_value, threshold)

    def _p_value(self, start: int, last: int, model: RecordModel) -> float | None:
        """The p-value of periods ``start`` to ``last`` against those before."""
        before, after = np.zeros(len(self.counts)), np.zeros(len(self.counts))
        before[:start], after[start : last + 1] = 1.0, 1.0
        many = [float(part @ self.counts) for part in (before, after)]
        if min(many) < _FEWEST_RECORDS:
            return None
        means = [part @ self.sums / number for part, number in zip((before, after), many, strict=True)]
        # These means still hold the slope, which is the same in both: an error of one in the number moves
        # sum/number by −mean/number. Both have one mean if there is no drift; that of all periods is known
        # best: a number that is too large makes its own mean, and so this variance, too small.
        common = (before + after) @ self.sums / sum(many)
        weights = after / many[1] - before / many[0]
        noise = float(weights @ self.table @ weights) * self.shape
        parts = [part / number for part, number in zip((before, after), many, strict=True)]
        for i, one in enumerate(parts):
            for j, other in enumerate(parts):
                sign = 1.0 if i == j else -1.0
                noise = noise + sign * float(one @ self.count @ other) * np.outer(common, common)
        sampling = model.covariance(self.answers) * (self.cluster_size * (1.0 / many[0] + 1.0 / many[1]))
        found = self.coordinates.values(means[1] - means[0])
        covariance = self.coordinates.covariance
        return filtered_test(found, covariance(sampling), covariance(noise), self.moves).p_value

    def _model(self, last: int) -> RecordModel:
        """Weighted points for the records of all periods up to one."""
        part = np.zeros(len(self.counts))
        part[: last + 1] = 1.0
        number = max(float(part @ self.counts), 1.0)
        noise = float(part @ self.table @ part) * self.shape / number**2
        return fit_records(self.answers, part @ self.sums / number - self.slope, noise)


def _without_count(function: NoisyTable, points: Points) -> Floats:
    """Kernel sums without what is taken off for the number of records: linear in the noisy cells alone."""
    return function.sum(points) + function.number_slope * function.count


def _part(after: int) -> float:
    """Of a sum of 1 over all steps there will ever be, the part of the one so many steps after the first."""
    return 1.0 / math.log2(after + 1) - 1.0 / math.log2(after + 2)


def _windows(last: int) -> int:
    """How many of the last 1, 2, 4, … periods leave one before them."""
    return int(math.log2(last)) + 1


def _checked(steps: Sequence[NoisyTable]) -> tuple[int, ...]:
    """The numbers of the steps; refuses what is not a series of one stream."""

    refused = partial(UsageError, "steps")
    if len(steps) < 2:
        raise refused("must be at least two steps of a stream", got=len(steps), remedy="release more")
    found = [each.stream_step for each in steps if isinstance(each, NoisyTable)]
    same = [each for each in found if each is not None]
    streams = [(each.stream, each.noise) for each in same]
    if len(same) < len(steps) or any(each != streams[0] for each in streams):
        remedy = "use hs.compare for single releases"
        raise refused("must be steps of one stream", got="other functions", remedy=remedy)
    numbers = tuple(each.step for each in same)
    view = same[0].noise.view
    if view.decay is not None:
        rule = "must show all steps so far, or a window"
        raise refused(rule, got="a stream that decays", remedy="start the stream without decay")
    apart = min(after - before for before, after in pairwise(numbers))
    if apart <= 0:
        raise refused("must be in their order", got="others", remedy="sort them by their number")
    if view.window is not None and apart < view.window:
        rule = f"of a window must be at least {view.window} steps apart, so that no record is in two"
        raise refused(rule, got="nearer ones", remedy=f"give every {view.window}th step")
    return numbers
