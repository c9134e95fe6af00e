"""Build the native code once more without processor-specific clones, and compare the results bit for bit.

Run by ``make portable``. The wheel is built into ``build/portable`` and never installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "build" / "portable"

DIGESTS = """
import hashlib, json
from fractions import Fraction
import numpy as np
import hushsum as hs
from hushsum import _native
from hushsum.privacy.noise import NoiseSource, discrete_gaussian, discrete_laplace

def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()

rng = np.random.default_rng(5)
dense = {d: rng.standard_normal((301, d)).astype(np.float32) * 3 for d in (1, 3, 55, 600)}
sets = [rng.integers(0, 500, size=rng.integers(0, 60)).tolist() for _ in range(200)]
codes = rng.integers(0, 4, size=(301, 20))
cases = [(hs.EuclideanKernel(d, 1.5), x) for d, x in dense.items()]
cases += [(hs.EuclideanKernel(3, 1.5, power=3), dense[3]), (hs.ManhattanKernel(55, 40.0), dense[55])]
cases += [(hs.EuclideanKernel(600, 9.0, projection="structured"), dense[600])]
cases += [(hs.AngularKernel(55, bits=4), dense[55]), (hs.AngularKernel(55, bits=40), dense[55])]
cases += [(hs.JaccardKernel(), sets), (hs.HammingKernel(20, power=2), codes)]
found = {"clone": _native.clone()}
for number, (kernel, records) in enumerate(cases):
    tally = hs.race(kernel, rows=75, width=400, seed=3).add(records)
    f = tally.release(epsilon=1.0, rows=75, insecure_noise_seed=1)
    found[f"{number} {kernel}"] = [digest(tally._table), digest(f.table), digest(f(records))]
found["laplace"] = digest(discrete_laplace(50_000, Fraction(1000), NoiseSource.insecure(1)))
found["gaussian"] = digest(discrete_gaussian(50_000, Fraction(17_000), NoiseSource.insecure(1)))
print(json.dumps(found))
"""


def build() -> None:
    """A wheel with HUSHSUM_PORTABLE=ON, unpacked."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        str(ROOT),
        "--wheel-dir",
        str(TARGET),
    ]
    subprocess.run(command, check=True, env={**os.environ, "HUSHSUM_PORTABLE": "ON"})
    (wheel,) = TARGET.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(TARGET / "package")
    wheel.unlink()


def digests(package: Path | None) -> dict[str, object]:
    """The results of the installed package, or of the one in a folder."""
    environment = dict(os.environ)
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    command = [sys.executable, "-c", DIGESTS]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=TARGET)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def main() -> int:
    """Build, compare, report."""
    build()
    here, portable = digests(None), digests(TARGET / "package")
    print(f"portable build: {here.pop('clone')} against {portable.pop('clone')}, ", end="")
    different = [name for name in here if here[name] != portable[name]]
    print(f"{len(here)} results, {len(different)} differ {different or ''}".rstrip())
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
