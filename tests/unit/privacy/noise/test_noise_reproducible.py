"""Seeded noise is the same for every instruction set and number of threads."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from hushsum._native import NOISE_CHUNK
from hushsum.privacy.noise import NoiseSource, discrete_gaussian, discrete_laplace

PROGRAM = """
import hashlib
from fractions import Fraction
from hushsum._native import clone
from hushsum.privacy.noise import NoiseSource, discrete_gaussian, discrete_laplace
digest = hashlib.sha256()
with NoiseSource.insecure(11) as source:
    for scale in (Fraction(1, 50), Fraction(3, 2), Fraction(1000), Fraction(10**9)):
        digest.update(discrete_laplace(40000, scale, source).tobytes())
    for variance in (Fraction(1, 3), Fraction(130**2), Fraction(10**14)):
        digest.update(discrete_gaussian(40000, variance, source).tobytes())
print(clone(), digest.hexdigest())
"""


def digest_of(clone: str) -> list[str]:
    environment = {**os.environ, "HUSHSUM_FORCE_CLONE": clone}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_clones_agree() -> None:
    baseline, v3, best = digest_of("baseline"), digest_of("v3"), digest_of("")
    assert baseline[0] == "baseline"
    assert baseline[1] == v3[1] == best[1]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_agree(threads: int) -> None:
    size = 5 * NOISE_CHUNK + 77
    for scale in (Fraction(1000), Fraction(10**11)):
        np.testing.assert_array_equal(
            discrete_laplace(size, scale, NoiseSource.insecure(2)),
            discrete_laplace(size, scale, NoiseSource.insecure(2), threads=threads),
        )
    np.testing.assert_array_equal(
        discrete_gaussian(size, Fraction(4000**2), NoiseSource.insecure(2)),
        discrete_gaussian(size, Fraction(4000**2), NoiseSource.insecure(2), threads=threads),
    )


def test_chunks_do_not_repeat() -> None:
    values = discrete_laplace(8 * NOISE_CHUNK, Fraction(10**6), NoiseSource.insecure(2))
    parts = values.reshape(-1, 128)
    assert len({hashlib.sha256(part.tobytes()).digest() for part in parts}) == len(parts)
