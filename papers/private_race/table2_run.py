"""Measure what ``results/table2.json`` does not have, part by part."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from papers.private_race.table2 import (
    DELTA,
    ENTRANTS,
    MOST_COLUMNS,
    Part,
    auto_part,
    entrant_part,
    sketch_part,
)
from papers.private_race.table2_data import DATA, HELD_OUT, HeldOut
from papers.private_race.table2_reduced import GRIDS, reduced_part
from papers.result_files import update_file

_FEW_EPSILONS = (0.1, 1.0)
"""Of ``auto`` on many columns, where a release takes minutes."""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parts(case: HeldOut, quick: bool) -> Iterator[tuple[str, Callable[[], Part | None]]]:
    """Names of the parts of a data set, and how each is measured."""
    many = case.dim > MOST_COLUMNS
    seeds = 1 if quick else 2 if many else 3
    yield "race", partial(sketch_part, case, _say, seeds=seeds, most_rows=2000 if many or quick else 8000)
    if many:
        for name in GRIDS:
            yield name, partial(reduced_part, case, name, _say, releases=seeds)
    else:
        for name in ENTRANTS:
            yield name, partial(entrant_part, case, name, _say)
    few: dict[str, Any] = {"epsilons": _FEW_EPSILONS} if many else {}
    seeds = 1 if many else seeds
    yield "auto", partial(auto_part, case, _say, delta=None, seeds=seeds, **few)
    if case.dim > 3:
        # Here δ buys very many features: minutes for a release.
        seeds, few = 1, {"epsilons": _FEW_EPSILONS}
    yield "auto, δ", partial(auto_part, case, _say, delta=DELTA, seeds=seeds, **few)


def measure_missing(
    names: Sequence[str],
    file: Path,
    *,
    queries: int = HELD_OUT,
    quick: bool = False,
    methods: Sequence[str] = (),
    again: bool = False,
) -> None:
    """Measure every part that the file does not have."""
    for name in names:
        found: list[Part] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
        done = set() if again else {part["method"] for part in found if part["data"] == name}
        case = DATA[name](queries)
        for method, measured in parts(case, quick):
            if method in done or (methods and method not in methods):
                continue
            part = measured()
            if part is not None:
                update_file(file, partial(_with_part, part))


def _with_part(part: Part, found: list[Part] | None) -> str:
    others = [
        each for each in found or [] if (each["data"], each["method"]) != (part["data"], part["method"])
    ]
    lines = ",\n ".join(json.dumps(each, ensure_ascii=False) for each in [*others, part])
    return f"[{lines}]\n"
