"""Write the golden files of released points and curves, beside those of tables.

``python -m tests.golden.make_points``. Files that exist are left alone: they are promises. The noise comes
from an insecure seed and the records from arithmetic: nothing is private.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import hushsum as hs
from hushsum.baselines import histogram, kme, pfda
from hushsum.releases import ReleasedFunction
from tests.golden import make as tables

POINTS = tables.POINTS
FOLDER = tables.FOLDER / "points"
QUERIES = POINTS[:3]
LINE = [[row[0]] for row in POINTS]
PLANE: Any = hs.ManhattanKernel(dim=2, bandwidth=2.0)
ONE = hs.GaussianKernel(dim=1, bandwidth=1.0)

MAKERS: dict[str, Callable[[], ReleasedFunction]] = {
    "histogram": lambda: histogram(
        POINTS, PLANE, bounds=[(0, 10), (-5, 5)], epsilon=1.0, bins=[3, 4], insecure_noise_seed=5
    ),
    "kme": lambda: kme(
        LINE, ONE, bounds=(0, 10), epsilon=2.0, points=[[1.0], [4.0], [8.0]], insecure_noise_seed=5
    ),
    "pfda": lambda: pfda(LINE, ONE, bounds=(0, 10), epsilon=2.0, steps=8, insecure_noise_seed=5),
}


def answers(function: ReleasedFunction) -> dict[str, Any]:
    """What a released function says, as JSON values."""
    dim: int = function.kernel.parameters()["dim"]
    queries = [row[:dim] for row in QUERIES]
    errors = function.query(queries).stderr
    return {
        "kernel": function.kernel.name,
        "count": function.count,
        "claim": function.claim.as_json(),
        "mean": function(queries).tolist(),
        "sum": function.sum(queries).tolist(),
        "stderr": [None if error != error else float(error) for error in errors],
    }


def main() -> None:
    """Write what is missing."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "expected.json"
    expected = json.loads(path.read_text()) if path.exists() else {}
    for name, make in MAKERS.items():
        if not (FOLDER / f"{name}.hush").exists():
            function = make()
            function.save(FOLDER / f"{name}.hush")
            expected[name] = answers(function)
    path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
