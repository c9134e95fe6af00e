"""CPU time of a noise draw against OpenDP's exact integer noise, in one run on one core.

Run: ``python -m benchmarks noise_speed [--quick] [--json]``. The best of several rounds counts; OpenDP's
rounds are smaller because its draws are thousands of times slower. Ours include the key, the checks and
the output's new pages.
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
    """One distribution at one parameter."""

    distribution: str
    parameter: int
    nanoseconds: float
    target: float
    opendp_nanoseconds: float
    ratio: float

    @property
    def met(self) -> bool:
        """Whether both targets are reached."""
        return self.nanoseconds <= self.target and self.ratio >= LEAST_RATIO


def best_nanoseconds(draw: Callable[[], object], size: int, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        draw()
        best = min(best, time.process_time() - start)
    return best / size * 1e9


def compare(distribution: str, parameter: int, target: float, quick: bool) -> Line:
    size, peer_size, rounds = (10**6, 2000, 5) if quick else (10**7, 10**4, 7)
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    peer: Callable[[list[int]], object]
    if distribution == "Laplace":
        peer = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(parameter))
    else:
        peer = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(parameter))

    def draw() -> object:
        if distribution == "Laplace":
            return discrete_laplace(size, Fraction(parameter), NoiseSource.fresh())
        return discrete_gaussian(size, Fraction(parameter) ** 2, NoiseSource.fresh())

    ours = best_nanoseconds(draw, size, rounds)
    theirs = best_nanoseconds(lambda: peer([0] * peer_size), peer_size, 3)
    return Line(distribution, parameter, ours, target, theirs, theirs / ours)


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of a noise draw, against OpenDP's.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    dp.enable_features("contrib")
    cases = (("Laplace", 1000, 10.0), ("Gaussian", 130, 30.0), ("Gaussian", 4000, 30.0))
    lines = [compare(*case, quick=arguments.quick) for case in cases]
    if arguments.json:
        rows = [{**asdict(line), "least_ratio": LEAST_RATIO, "met": line.met} for line in lines]
        print(json.dumps({"clone": clone(), "lines": rows}, indent=2))
        return
    print(f"instruction set {clone()}, one core, nanoseconds of CPU time a draw; least ratio {LEAST_RATIO}")
    print(f"{'noise':<10} {'scale or σ':>10} {'hushsum':>8} {'target':>7} {'OpenDP':>9} {'ratio':>7}  met")
    for line in lines:
        print(
            f"{line.distribution:<10} {line.parameter:>10} {line.nanoseconds:8.2f} {line.target:7.0f} "
            f"{line.opendp_nanoseconds:9.0f} {line.ratio:7.0f}  {'yes' if line.met else 'NO'}"
        )


if __name__ == "__main__":
    main()
