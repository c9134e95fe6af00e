"""Outside audits of every mechanism: claim, lower bound, and lower bound of a copy with a fifth less noise.

Run by ``benchmarks/outside_audits/run.sh``. What the results have already is not run again, so a run may be
interrupted; ``--fresh`` begins anew. Noise is drawn from numbered seeds in place of the operating system's
generator, so the same releases are drawn again by as many releases.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from benchmarks.outside_audits.auditors import SIGNIFICANCE, lower_bounds, versions
from benchmarks.outside_audits.methods import method_worlds
from benchmarks.outside_audits.models import model_worlds
from benchmarks.outside_audits.parties import party_worlds
from benchmarks.outside_audits.registered import basis_worlds, mechanism_worlds
from benchmarks.outside_audits.table import RESULTS, published_rows, write_table
from benchmarks.outside_audits.worlds import DELTA, Budget, Sampler, World
from hushsum._native import StreamKey
from hushsum.privacy import _calibration as calibration
from hushsum.privacy.noise import NoiseSource

EPSILONS = (0.5, 1.0, 3.0)
PURE_SECONDS = {0.5: 0.6, 1.0: 0.4, 3.0: 0.2}
"""Of processor time for the releases of one side: a small ε needs more of them."""

GAUSSIAN_SECONDS = {0.5: 0.1, 1.0: 0.1, 3.0: 0.5}
"""The same with δ = 10⁻⁵, where the copy takes 50,000 releases at ε = 0.5 and 15,000 at 1: too many here."""

SEED = 2026
_FEWEST, _MOST = 100, 60_000


def every_world() -> Iterator[World]:
    """All of them, from the registries and from the list of methods, those with pure ε first."""
    found = [*basis_worlds(), *mechanism_worlds(), *model_worlds(), *method_worlds(), *party_worlds()]
    yield from sorted(found, key=lambda world: not world.pure)


class SeededNoise:
    """Numbered keys in place of fresh ones; the noise hides made-up records."""

    def __init__(self, name: str) -> None:
        self._name, self._number = f"{SEED} {name}", 0

    def __call__(self) -> NoiseSource:
        """The source of the next release."""
        self._number += 1
        key = hashlib.sha256(f"{self._name} {self._number}".encode()).digest()
        return NoiseSource(StreamKey(key), secure=True)


def sampled(sampler: Sampler, releases: int) -> tuple[Any, Any]:
    """Scores of both worlds."""
    return sampler(0, releases), sampler(1, releases)


def releases_for(sampler: Sampler, seconds: float) -> int:
    """How many of one side fit in the time, to two digits."""
    start, tried = time.process_time(), 0
    while time.process_time() - start < 0.1 or tried < 20:
        sampler(tried // 10 % 2, 10)
        tried += 10
    number = int(seconds * tried / (time.process_time() - start))
    digits: int = 10 ** max(len(str(number)) - 2, 0)
    return min(max(number // digits * digits, _FEWEST), _MOST)


def audited(world: World, epsilon: float, releases: int | None) -> dict[str, Any]:
    """One row of the table."""
    delta = None if world.pure else DELTA
    claim = Budget(epsilon, delta)
    row: dict[str, Any] = {"name": world.name, "pair": world.pair, "epsilon": epsilon, "delta": delta}
    for column, budget in (("bound", claim), ("copy", claim.with_less_noise())):
        seed = f"{world.name}, {world.pair}, {epsilon}, {delta}, {column}"
        NoiseSource.fresh = SeededNoise(seed)  # type: ignore[method-assign]
        sampler = world.open(budget)
        seconds = (PURE_SECONDS if world.pure else GAUSSIAN_SECONDS)[epsilon]
        releases = releases or world.releases.get(epsilon) or releases_for(sampler, seconds)
        NoiseSource.fresh = SeededNoise(seed + ", audited")  # type: ignore[method-assign]
        row[column] = lower_bounds(sampled(sampler, releases), delta, gaussian=world.gaussian)
    row |= {"releases": releases, "covers": sorted(world.covers)}
    if world.attainable is not None:
        row["copy attains at most"] = world.attainable(claim.with_less_noise().epsilon)
    return row


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row is about."""
    return row["name"], row["pair"], row["epsilon"], row["delta"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="run everything again")
    parser.add_argument("--only", default="", help="run worlds whose name contains this")
    parser.add_argument("--again", action="store_true", help="run those of --only again")
    parser.add_argument("--releases", type=int, help="of each side; default: what fits in the time")
    arguments = parser.parse_args()
    # The same calibration would be searched for at every release; it depends on public parameters alone.
    calibration.gaussian_variances = lru_cache(calibration.gaussian_variances)  # type: ignore[attr-defined]
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    if not arguments.fresh:
        rows = RESULTS.read() or published_rows()
    requested = [
        (world, epsilon)
        for world in every_world()
        for epsilon in EPSILONS
        if epsilon <= world.largest_epsilon
    ]
    keys = [(world.name, world.pair, epsilon, None if world.pure else DELTA) for world, epsilon in requested]
    rows = [
        row for row in rows if key_of(row) in keys and not (arguments.again and arguments.only in row["name"])
    ]
    for (world, epsilon), key in zip(requested, keys, strict=True):
        if arguments.only not in world.name or key in {key_of(row) for row in rows}:
            continue
        rows.append(audited(world, epsilon, arguments.releases))
        rows.sort(key=lambda row: keys.index(key_of(row)))
        print(json.dumps(rows[[key_of(row) for row in rows].index(key)]), flush=True)
        _save(rows)
    _save(rows)


def _save(rows: list[dict[str, Any]]) -> None:
    RESULTS.write(rows)
    write_table({**versions(), "seed": SEED, "significance": SIGNIFICANCE}, rows)


if __name__ == "__main__":
    main()
