"""Private summarization between processes: five owners of 12,000 MNIST images each, a summary of 2,000.

Every party is a process of its own that talks TLS on this machine. Measured are the wall time from the start
of the first to the end of the last, the processor time of all, and the peak of their memory together. The
squared MMD to the validation set, in other features than those that were compared, stands beside that of a
uniform sample of the same size.

Linux only, for the peak of memory. ``HUSHSUM_DATA=… python benchmarks/accuracy/summarize_mnist.py``
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushsum.parties.summarization import SummaryFeatures

_CHILD = "from hushsum.cli.main import run; run()"
_BANDWIDTH = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=12_000)
    parser.add_argument("--size", type=int, default=2_000)
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--pace", type=float, default=0.5)
    parser.add_argument("--rule", default=None)
    given = parser.parse_args()
    data = Path(os.environ["HUSHSUM_DATA"]) / "mnist.parquet"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pool = prepare(data, place, given.each)
        seconds, peak, made = run(place, given)
        summary = images(place / "summary.parquet")
        validation = images(place / "validation.parquet")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    features = SummaryFeatures(784, _BANDWIDTH, 2000, seed=99)
    target = mean(features, validation)
    random = np.random.default_rng(1)
    uniform = pool[random.choice(len(pool), len(summary), replace=False)]
    distance = [float(np.sum((mean(features, each) - target) ** 2)) for each in (summary, uniform)]
    print(f"owners × records       5 × {given.each}")
    print(f"summary                {made['size']} points of {made.get('seen', made.get('points_seen'))} seen")
    print(f"wall, all processes    {seconds:.1f} s")
    print(f"processor time         {spent.ru_utime + spent.ru_stime:.1f} s")
    print(f"peak memory, together  {peak / 1024:.0f} MB")
    print(f"squared MMD            {distance[0]:.4f} (uniform {distance[1]:.4f})")


def prepare(data: Path, place: Path, each: int) -> NDArray[np.float32]:
    """Files of five owners by pairs of digits, and a validation set of threes and fours at 70:30."""
    table = pq.read_table(data)
    pixels = np.asarray(table["pixels"].combine_chunks().flatten(), np.float32).reshape(-1, 784) / 255
    digits = table["target"].to_numpy()
    random = np.random.default_rng(0)
    chosen = np.concatenate(
        [random.choice(np.flatnonzero(digits == digit), size, False) for digit, size in ((3, 700), (4, 300))]
    )
    write(place / "validation.parquet", pixels[chosen], digits[chosen])
    left = np.ones(len(digits), np.bool_)
    left[chosen] = False
    owned = []
    for i in range(5):
        places = np.flatnonzero(left & (digits // 2 == i))
        chosen = random.choice(places, min(each, len(places)), replace=False)
        write(place / f"owner{i}.parquet", pixels[chosen], digits[chosen])
        owned.append(pixels[chosen])
    return np.concatenate(owned)


def write(path: Path, pixels: NDArray[np.float32], digits: NDArray[Any]) -> None:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(pixels.reshape(-1)), 784)
    pq.write_table(pa.table({"pixels": lists, "digit": digits}), path)


def images(path: Path) -> NDArray[np.float64]:
    values = np.asarray(pq.read_table(path)["pixels"].combine_chunks().flatten(), np.float64)
    return values.reshape(-1, 784)


def mean(features: SummaryFeatures, points: NDArray[Any]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = features.hashes(points).mean(axis=0) * features.unit
    return result


def start(place: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    with open(place / f"{name}.out", "wb") as out, open(place / f"{name}.err", "wb") as err:
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD, "summarize", *arguments], cwd=place, stdout=out, stderr=err
        )


def resident(process: int) -> int:
    """Memory of a process in kB; pages that several share count in parts."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


def run(place: Path, given: argparse.Namespace) -> tuple[float, int, dict[str, object]]:
    """Seconds of all processes together, their peak memory in kB, and the curator's result."""
    prints = {}
    for name in ("curator", *(f"owner{i}" for i in range(5))):
        start(place, name, "keys", f"{name}.key").wait()
        prints[name] = (place / f"{name}.out").read_text().strip()
    begun = time.monotonic()
    parties, owners = [], []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
    for i in range(5):
        parties.append(
            start(
                place, f"owner{i}", "owner", f"owner{i}.parquet", "--curator", f"{where}@{prints['curator']}",
                "--key", f"owner{i}.key", "--columns", "pixels,digit",
            )
        )  # fmt: skip
        owners += ["--owner", prints[f"owner{i}"]]
    rule = [] if given.rule is None else ["--rule", given.rule]
    parties.append(
        start(
            place, "curator", "curator", *owners, "--listen", where, "--key", "curator.key",
            "--validation", "validation.parquet", "--columns", "pixels", "--carry", "digit",
            "--size", str(given.size), "--epsilon", str(given.epsilon), "--delta", "1e-5",
            "--bandwidth", str(_BANDWIDTH), "--features", str(given.features), "--pace", str(given.pace),
            *rule, "-o", "summary.parquet", "--json",
        )
    )  # fmt: skip
    peak = 0
    while any(party.poll() is None for party in parties):
        peak = max(peak, sum(resident(party.pid) for party in parties))
        time.sleep(0.1)
    codes = [party.wait() for party in parties]
    seconds = time.monotonic() - begun
    errors = [(place / f"{name}.err").read_text() for name in prints]
    if any(codes):
        raise SystemExit("\n".join(errors))
    return seconds, peak, json.loads((place / "curator.out").read_text())


if __name__ == "__main__":
    main()
