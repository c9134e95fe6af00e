"""A release that is part of a sum is given again: in Python, in files, rounded, with forged lists of parts.

A release that is counted twice doubles the weight of its site, and under ``disjoint_units`` its records move
the sum twice as far as the claim says.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hushsum as hs
from hushsum.errors import FileRefused, IncompatibleTallies
from hushsum.parties import merge_functions

KERNEL = hs.EuclideanKernel(dim=1, bandwidth=1.0)


def released(place: float, **how: Any) -> Any:
    tally = hs.race(KERNEL, rows=20, width=30).add([[place]] * 500)
    return tally.release(rows=20, **({"epsilon": 0.1} | how))


def stored(function: Any) -> Any:
    kept = io.BytesIO()
    function.save(kept)
    kept.seek(0)
    return hs.load(kept)


@pytest.mark.parametrize("again", [lambda f: f, stored], ids=["in memory", "from a file"])
def test_a_part_of_a_sum_is_not_added_again(again: Any) -> None:
    f, g, h = released(0.0), released(1.0), released(2.0)
    pair = again(hs.merge(f, g))
    for repeated in (
        [pair, f],
        [f, pair],
        [pair, again(g)],
        [pair, again(hs.merge(h, g))],
        [pair, again(pair)],
    ):
        with pytest.raises(IncompatibleTallies, match="contains it"):
            hs.merge(*repeated)
    every = again(hs.merge(pair, h))
    assert every.releases == tuple(sorted(f.releases + g.releases + h.releases))
    assert every.claim.trust.parties == 3
    with pytest.raises(IncompatibleTallies, match="contains it"):
        hs.merge(hs.merge(every, released(3.0)), again(h))


def test_rounding_does_not_hide_a_part() -> None:
    f, g = released(0.0), released(1.0)
    step = f.rounded().step
    assert step > 1
    for sum_ in (hs.merge(f, g).rounded(step), hs.merge(f.rounded(step), g.rounded(step))):
        with pytest.raises(IncompatibleTallies, match="contains it"):
            hs.merge(stored(sum_), f.rounded(step))
        every: Any = hs.merge(sum_, released(2.0).rounded(step))
        assert every.claim.trust.parties == 3
    # The digest of a packed table is that of its numbers.
    assert stored(f).releases == stored(f.rounded(step)).releases == f.releases


def test_commands_refuse_it_too(tmp_path: Path) -> None:
    for name, function in {"f": released(0.0), "g": released(1.0)}.items():
        function.save(tmp_path / f"{name}.hush")
    f, g, pair = (str(tmp_path / f"{name}.hush") for name in ("f", "g", "pair"))
    merge_functions([f, g], pair)
    with pytest.raises(IncompatibleTallies, match="contains it"):
        merge_functions([pair, g], str(tmp_path / "twice.hush"))
    assert not (tmp_path / "twice.hush").exists()


def test_files_that_do_not_name_their_parts_are_refused() -> None:
    pair = hs.merge(released(0.0), released(1.0))
    one = released(0.0)
    forged = [
        replace(pair, parts=()),
        replace(pair, parts=pair.parts[:1]),
        replace(pair, parts=pair.parts[::-1]),
        replace(pair, parts=(pair.parts[0], pair.parts[0])),
        replace(pair, parts=(pair.parts[0], "x" * 32)),
        replace(pair, parts=(pair.parts[0], pair.parts[1] + "\n")),
        replace(one, parts=pair.parts),
    ]
    for each in forged:
        with pytest.raises(FileRefused):
            stored(each)


def test_first_rows_name_the_release_that_they_are_of() -> None:
    f, g = released(0.0), released(1.0)
    half = f.first_rows(10)
    assert half.releases == f.releases
    for one, other in ((f.rounded(3).first_rows(10), half.rounded(3)), (hs.merge(f, g).first_rows(10), half)):
        with pytest.raises(IncompatibleTallies):
            hs.merge(one, other, disjoint_units=True)
