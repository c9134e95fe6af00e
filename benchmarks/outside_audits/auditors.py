"""The two outside auditors, each as a lower bound on ε from the hits of one event in two worlds."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SIGNIFICANCE = 1e-3
"""The probability that one bound exceeds the true ε; both auditors are given it."""

PILOT = 0.2
"""The part of the scores that chooses the event; the auditors see only the rest."""

_FEWEST = 20


@dataclass(frozen=True, slots=True)
class Event:
    """The scores that decide for the likely world: those from ``threshold`` on, of all scores times ``sign``.

    The likely world is the second for a sign of 1, and the first for −1.
    """

    threshold: float
    sign: int

    def hits(self, scores: tuple[Floats, Floats]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which scores of the likely and of the unlikely world are in the event."""
        likely, unlikely = scores[::-1] if self.sign > 0 else scores
        return self.sign * likely >= self.threshold, self.sign * unlikely >= self.threshold


def load_jax_privacy() -> ModuleType:
    """``jax_privacy.auditing`` from its file: the package imports JAX, which the module does not use."""
    name = "jax_privacy_auditing"
    if name not in sys.modules:
        package = importlib.util.find_spec("jax_privacy")
        assert package is not None, "run benchmarks/outside_audits/run.sh"
        assert package.submodule_search_locations is not None
        file = Path(next(iter(package.submodule_search_locations))) / "auditing.py"
        found = importlib.util.spec_from_file_location(name, file)
        assert found is not None
        assert found.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(found)
        found.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def versions() -> dict[str, str]:
    """Of the auditors."""
    return {name: version(name) for name in ("jax-privacy", "privacy-estimates", "dp-accounting")}


def best_event(scores: tuple[Floats, Floats], *, pure: bool) -> Event:
    """The event of the largest lower bound on pilot scores: a normal approximation of it, on a grid.

    For pure ε a bound on the log ratio of probabilities, for Gaussian noise one on the distance of two normal
    distributions.
    """
    from scipy.special import ndtri

    best, chosen = -np.inf, Event(0.0, 1)
    levels = np.unique(np.quantile(np.concatenate(scores), np.linspace(0.005, 0.995, 199)))
    for sign in (1, -1):
        for level in levels:
            event = Event(float(sign * level), sign)
            likely, unlikely = (np.count_nonzero(hits) for hits in event.hits(scores))
            number = len(scores[0])
            if min(likely, unlikely) < min(_FEWEST, number // 10) or max(likely, unlikely) == number:
                continue
            p, q = likely / number, unlikely / number
            # The pilot is a quarter of what is left for the bound, so its errors are twice as large.
            p_low, q_high = (
                rate + way * 3.3 * np.sqrt(rate * (1.0 - rate) / (4.0 * number))
                for rate, way in ((p, -1.0), (q, 1.0))
            )
            if not 0.0 < p_low < 1.0 or not 0.0 < q_high < 1.0:
                continue
            bound = np.log(p_low / q_high) if pure else ndtri(p_low) - ndtri(q_high)
            if bound > best:
                best, chosen = float(bound), event
    return chosen


def split(scores: tuple[Floats, Floats]) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Pilot and rest."""
    end = round(PILOT * len(scores[0]))
    return (scores[0][:end], scores[1][:end]), (scores[0][end:], scores[1][end:])


def lower_bounds(
    scores: tuple[Floats, Floats], delta: float | None, *, gaussian: bool = True
) -> dict[str, float]:
    """What each auditor shows of ε, at δ where there is one."""
    pilot, rest = split(scores)
    likely, unlikely = best_event(pilot, pure=delta is None).hits(rest)
    return {
        "jax-privacy": _jax_privacy(likely, unlikely, delta, gaussian=gaussian),
        "privacy-estimates": _estimates(likely, unlikely, delta),
    }


def _jax_privacy(
    likely: NDArray[np.bool_], unlikely: NDArray[np.bool_], delta: float | None, *, gaussian: bool
) -> float:
    """Clopper–Pearson bounds of the event for pure ε and for other losses; with δ its bound for Gaussian
    noise.
    """
    auditing = load_jax_privacy()
    auditor = auditing.CanaryScoreAuditor(likely.astype(np.float64), unlikely.astype(np.float64))
    if delta is None or not gaussian:
        found = auditor.epsilon_clopper_pearson(
            SIGNIFICANCE, delta or 0.0, threshold_strategy=auditing.Explicit(0.5)
        )
    elif _tell_nothing(likely, unlikely):
        return 0.0
    else:
        found = auditor.epsilon_from_gdp(SIGNIFICANCE, delta)
    return max(float(found), 0.0)


def _tell_nothing(likely: NDArray[np.bool_], unlikely: NDArray[np.bool_]) -> bool:
    """Whether the upper bounds of both error rates add up to 1 or more, which bounds no distance.

    Version 2.0.0 takes the absolute value of the distance that such bounds give. Of two equal distributions,
    with scores that are not split into two values, it shows ε = 7.2 from 60 samples and 1.2 from 30,000.
    """
    from scipy.stats import beta

    # As there: three thresholds (nothing, the event, everything), two sides.
    tail = SIGNIFICANCE / 6.0
    missed, alarms = np.count_nonzero(~likely), np.count_nonzero(unlikely)
    bounds = (beta.ppf(1.0 - tail, hits + 1, len(likely) - hits) for hits in (missed, alarms))
    return bool(np.nan_to_num(sum(bounds), nan=2.0) >= 1.0)


def _estimates(likely: NDArray[np.bool_], unlikely: NDArray[np.bool_], delta: float | None) -> float:
    """The bound from Jeffreys' intervals of both error rates; low for Gaussian noise, which it ignores."""
    estimates: Any = importlib.import_module("privacy_estimates")
    hits, alarms = int(np.count_nonzero(likely)), int(np.count_nonzero(unlikely))
    counts = estimates.AttackResults(FN=len(likely) - hits, FP=alarms, TN=len(unlikely) - alarms, TP=hits)
    return max(float(estimates.compute_eps_lo(counts, delta or 0.0, SIGNIFICANCE, "jeffreys")), 0.0)
