"""Build the native code in another way, and compare its results with the installed ones bit for bit.

``python -m tests.native_builds portable`` builds without processor-specific clones, ``clang`` with Clang, and
``arm64`` with a cross-compiler for an arm64 interpreter that QEMU runs. Everything happens in
``build/NAME``; nothing is installed. ``arm64`` needs Debian's packages g++-aarch64-linux-gnu and qemu-user,
and downloads an interpreter.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILDS = ROOT / "build"

DIGESTS = """
import hashlib, json, sys
# An editable installation would come before the build that is to be tested.
if len(sys.argv) > 1:
    sys.meta_path = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable")]
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
found = {"clone": _native.clone(), "file": _native.__file__}
for number, (kernel, records) in enumerate(cases):
    tally = hs.race(kernel, rows=75, width=400, seed=3).add(records)
    f = tally.release(epsilon=1.0, rows=75, insecure_noise_seed=1)
    found[f"{number} {kernel}"] = [digest(tally._table), digest(f.table), digest(f(records))]
assert len(sys.argv) == 1 or _native.__file__.startswith(sys.argv[1]), _native.__file__
features = [(hs.GaussianKernel(d, 2.0), x) for d, x in dense.items()]
features += [(hs.MaternKernel(55, 3.0), dense[55]), (hs.LaplacianKernel(3, 3.0), dense[3])]
for number, (kernel, records) in enumerate(features):
    tally = hs.fourier_features(kernel, features=130, seed=3).add(records, threads=2)
    found[f"features {number} {kernel}"] = digest(tally._table)
for kernel, groups in ((hs.GaussianKernel(55, 3.0), 2), (hs.MaternKernel(600, 20.0), 1)):
    tally = hs.fourier_features(kernel, features=2048, groups=groups, structured=True, seed=3)
    found[f"structured {kernel}"] = digest(tally.add(dense[kernel.dim], threads=2)._table)
for degree in (2, 3, 5):
    tally = hs.grid(hs.GaussianKernel(3, 0.5), bounds=(-9, 9), degree=degree).add(dense[3], threads=2)
    found[f"grid {degree}"] = digest(tally._table)
windows = [(60, rng.normal(size=(33, 14))), (70, rng.normal(size=(17, 22)))]
places = rng.uniform(-9, 70, (500, 2))
found["windows"] = digest(_native.sum_windows(rng.integers(-99, 99, 4200), windows, places, True, 2))
found["laplace"] = digest(discrete_laplace(50_000, Fraction(1000), NoiseSource.insecure(1)))
found["gaussian"] = digest(discrete_gaussian(50_000, Fraction(17_000), NoiseSource.insecure(1)))
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Built:
    """A package in a folder, and the interpreter that runs it."""

    package: Path
    interpreter: Sequence[str] = (sys.executable,)
    environment: dict[str, str] = field(default_factory=dict)


def wheel(name: str, **environment: str) -> Built:
    """A wheel for this machine, made under additional environment variables, unpacked."""
    target = BUILDS / name
    shutil.rmtree(target, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        str(ROOT),
        "--wheel-dir",
        str(target),
    ]
    # Its own build folder: CMake keeps the compiler of the first configuration. Symbols are for sanitizers.
    settings = [f"--config-settings=build-dir={target / 'cmake'}", "--config-settings=install.strip=false"]
    subprocess.run([*command, *settings], check=True, env={**os.environ, **environment})
    (made,) = target.glob("*.whl")
    with zipfile.ZipFile(made) as archive:
        archive.extractall(target / "package")
    return Built(target / "package")


def portable() -> Built:
    """Every hot loop compiled once, for the baseline of the processor's family."""
    return wheel("portable", HUSHSUM_PORTABLE="ON")


def clang() -> Built:
    """The same sources, compiled with Clang."""
    return wheel("clang", CXX="clang++", CC="clang")


def arm64() -> Built:
    """Cross-compiled, with Debian's interpreter for arm64 and PyPI's NumPy for it."""
    target = BUILDS / "arm64"
    system, site = target / "system", target / "package"
    if not (system / "usr" / "bin" / "python3.11").exists():
        unpack_debian(target, system)
    if not (site / "numpy").exists():
        platform = ["--platform", "manylinux2014_aarch64", "--python-version", "3.11", "--only-binary=:all:"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *platform]
        subprocess.run([*command, "--target", str(site), "numpy<2.5"], check=True)
    shutil.rmtree(site / "hushsum", ignore_errors=True)
    shutil.copytree(
        ROOT / "src" / "hushsum", site / "hushsum", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    headers = system / "usr" / "include"
    suffix = ".cpython-311-aarch64-linux-gnu.so"
    configure = [
        *("cmake", "-S", str(ROOT), "-B", str(target / "cmake"), "-DCMAKE_BUILD_TYPE=Release"),
        *("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"),
        "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++",
        f"-DCMAKE_CXX_FLAGS=-idirafter {headers} -static-libstdc++ -static-libgcc",
        *(f"-DPython_EXECUTABLE={sys.executable}", f"-DPython_INCLUDE_DIR={headers / 'python3.11'}"),
        *("-DPython_SOABI=cpython-311-aarch64-linux-gnu", f"-DNB_SUFFIX={suffix}", f"-DNB_SUFFIX_S={suffix}"),
    ]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        ["cmake", "--build", str(target / "cmake"), "--parallel", "2"], check=True, stdout=subprocess.DEVNULL
    )
    (module,) = (target / "cmake").glob("_native*.so")
    shutil.copy(module, site / "hushsum" / f"_native{suffix}")
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64") or "qemu-aarch64"
    interpreter = (emulator, "-L", str(system), str(system / "usr" / "bin" / "python3.11"))
    return Built(site, interpreter, {"PYTHONHOME": str(system / "usr"), "OPENBLAS_NUM_THREADS": "1"})


def unpack_debian(target: Path, system: Path) -> None:
    """Debian's Python for arm64, in a folder, without touching the system's packages."""
    state, cache = target / "apt-state", target / "apt-cache"
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (cache / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    places = {"Dir::State": state, "Dir::State::status": state / "status", "Dir::Cache": cache}
    options = [f"-o{name}={value}" for name, value in places.items()]
    options += ["-oAPT::Architecture=arm64", "-oAPT::Architectures=arm64", "-qq"]
    packages = ["python3.11-minimal", "libpython3.11-stdlib", "libpython3.11-dev"]
    subprocess.run(["apt-get", *options, "update"], check=True)
    install = ["install", "--yes", "--download-only", "--no-install-recommends", *packages]
    subprocess.run(["apt-get", *options, *install], check=True, stdout=subprocess.DEVNULL)
    for package in sorted((cache / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(package), str(system)], check=True)


def digests(built: Built | None) -> dict[str, object]:
    """The results of the installed package, or of another build."""
    environment = dict(os.environ)
    command = [sys.executable, "-c", DIGESTS]
    if built is not None:
        environment |= {"PYTHONPATH": str(built.package), **built.environment}
        command = [*built.interpreter, "-c", DIGESTS, str(built.package)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=BUILDS)
    found: dict[str, object] = json.loads(done.stdout)
    # An editable installation is found before PYTHONPATH, and would be compared with itself.
    file = Path(str(found.pop("file"))).resolve()
    if built is not None and built.package.resolve() not in file.parents:
        raise SystemExit(f"{built.package} was not imported but {file}; install without -e")
    return found


WAYS: dict[str, Callable[[], Built]] = {"portable": portable, "clang": clang, "arm64": arm64}


def main(names: Sequence[str]) -> int:
    """Build, compare, report."""
    differ = 0
    for name in names:
        other = digests(WAYS[name]())
        here = digests(None)
        print(f"{name} build: {here.pop('clone')} against {other.pop('clone')}, ", end="")
        different = [each for each in here if here[each] != other[each]]
        print(f"{len(here)} results, {len(different)} differ {different or ''}".rstrip())
        differ += bool(different)
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
