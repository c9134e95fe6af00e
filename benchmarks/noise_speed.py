"""CPU time of a noise draw against OpenDP's exact integer noise, in one run on one core.

Run: ``python benchmarks/noise_speed.py [--quick] [--json]``. The best of several rounds counts; OpenDP's round is smaller
because its draws are thousands of times slower.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction

import opendp.prelude as dp

from hushsum._native import clone
from hushsum.privacy.noise import NoiseSource, discrete_gaussian, discrete_laplace

LEAST_RATIO = 1000


@dataclass(frozen=True, slots=True)
class Line:
    law: str
    parameter: str
    nanoseconds: float
    target: float
    opendp_nanoseconds: float
    ratio: float

    @property
    def met(self) -> bool:
        return self.nanoseconds <= self.target and self.ratio >= LEAST_RATIO


def best_nanoseconds(draw: Callable[[], object], size: int, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        draw()
        best = min(best, time.process_time() - start)
    return best / size * 1e9


def opendp_laplace(scale: float) -> Callable[[list[int]], object]:
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement: Callable[[list[int]], object] = dp.m.make_laplace(
        domain, dp.l1_distance(T="i64"), scale=scale
    )
    return measurement


def opendp_gaussian(scale: float) -> Callable[[list[int]], object]:
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement: Callable[[list[int]], object] = dp.m.make_gaussian(
        domain, dp.l2_distance(T="f64"), scale=scale
    )
    return measurement


def measure(quick: bool) -> list[Line]:
    dp.enable_features("contrib")
    size, peer_size, rounds = (10**6, 2000, 5) if quick else (10**7, 10**4, 7)
    zeros = [0] * peer_size
    lines = []
    for scale in (1000,):
        ours = best_nanoseconds(
            lambda s=scale: discrete_laplace(size, Fraction(s), NoiseSource.fresh()), size, rounds
        )
        peer = opendp_laplace(float(scale))
        theirs = best_nanoseconds(lambda p=peer: p(zeros), peer_size, 3)
        lines.append(Line("discrete Laplace", f"scale {scale}", ours, 10, theirs, theirs / ours))
    for sigma in (130, 4000):
        ours = best_nanoseconds(
            lambda s=sigma: discrete_gaussian(size, Fraction(s * s), NoiseSource.fresh()), size, rounds
        )
        peer = opendp_gaussian(float(sigma))
        theirs = best_nanoseconds(lambda p=peer: p(zeros), peer_size, 3)
        lines.append(Line("discrete Gaussian", f"sigma {sigma}", ours, 30, theirs, theirs / ours))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of a noise draw, against OpenDP's.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    lines = measure(arguments.quick)
    if arguments.json:
        rows = [{**asdict(line), "least_ratio": LEAST_RATIO, "met": line.met} for line in lines]
        print(json.dumps({"clone": clone(), "lines": rows}, indent=2))
        return
    print(
        f"instruction set {clone()}, one core, nanoseconds of CPU time a draw; targets include {LEAST_RATIO} × OpenDP"
    )
    print(f"{'law':<18} {'parameter':<12} {'hushsum':>8} {'target':>7} {'OpenDP':>9} {'ratio':>7}  met")
    for line in lines:
        print(
            f"{line.law:<18} {line.parameter:<12} {line.nanoseconds:8.2f} {line.target:7.0f} "
            f"{line.opendp_nanoseconds:9.0f} {line.ratio:7.0f}  {'yes' if line.met else 'NO'}"
        )


if __name__ == "__main__":
    main()
