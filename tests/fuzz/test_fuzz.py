"""The fuzz targets with changes decided by a seed: some hundreds of inputs each, 10⁶ behind ``-m slow``."""

from __future__ import annotations

import pytest

from tests.fuzz.run import fuzz
from tests.fuzz.targets import TARGETS, inputs_of, run

CHEAP = {
    "hush": 300,
    "models": 20,
    "answers": 150,
    "parquet": 40,
    "arrow-file": 40,
    "arrow": 1500,
    "aggregation": 60,
}


@pytest.mark.parametrize("name", TARGETS)
def test_changed_bytes_are_refused_or_usable(name: str) -> None:
    number = CHEAP.get(name, 200)
    read = run(TARGETS[name], 0, number)
    assert read < number, "no change was ever refused"


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read(name: str) -> None:
    """Otherwise every change would be refused for the wrong reason, and nothing would be tested."""
    target = TARGETS[name]
    for data in inputs_of(name)[: len(inputs_of(name)) - len(target.kept())]:
        assert target.check(target.repair(data))


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_holds(name: str) -> None:
    """What was a finding once is refused or usable now."""
    for data in TARGETS[name].kept():
        TARGETS[name].check(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_million_changes(name: str) -> None:
    """Resumes where the last run stopped; see ``python -m tests.fuzz.run``."""
    fuzz(TARGETS[name], 1_000_000)
