"""The main job on a synthetic payroll: count, release, query, plot, and compare with the truth."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import Kernel, answer_in_words, positive_integer
from hushsum.planning import KernelSpec
from hushsum.plotting import Curve, Picture, save_figure
from hushsum.privacy import Claim, ReleaseRequest
from hushsum.records import pyarrow

from ._answers import AnsweredPoints, QueryTerms, query_points
from ._deliver import Destination, release_tally
from ._files import Progress, RecordFiles, open_function, tally_records

BANDWIDTH: Final = 5_000.0
QUERIES: Final = (20_000.0, 30_000.0, 42_000.0, 70_000.0, 92_000.0, 145_000.0, 220_000.0)
_TRUTH_POINTS = 120
_CURVE_POINTS = 500
_MOST_RECORDS = 100_000_000


@dataclass(frozen=True, slots=True)
class DemoDone:
    """What was made, how the answers compare with the truth, and how long each step took."""

    files: dict[str, str]
    claim: Claim
    kernel: Kernel
    answered: AnsweredPoints
    truth: tuple[float, ...]
    seconds: dict[str, float]

    @property
    def inside(self) -> int:
        """How many intervals hold the truth."""
        truth, answers = np.array(self.truth), self.answered.answers
        return int(np.count_nonzero((answers["lower"] <= truth) & (truth <= answers["upper"])))

    def as_json(self) -> dict[str, Any]:
        """The demonstration for a machine."""
        return {
            "files": self.files,
            "claim": self.claim.in_numbers(),
            "answers": [
                {**each, "truth": truth}
                for each, truth in zip(self.answered.as_json(), self.truth, strict=True)
            ],
            "seconds": self.seconds,
        }


def run_demo(
    folder: str = "demo",
    *,
    records: int = 200_000,
    epsilon: float = 1.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> DemoDone:
    """Generate a payroll in ``folder`` and release the function of its salaries.

    The truth stands beside the answers because the payroll is made up; for private data that comparison would
    be a leak.
    """
    number = positive_integer("records", records, at_most=_MOST_RECORDS)
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise UsageError("output", "must be the path of a folder", got="a file")
    place.mkdir(parents=True, exist_ok=True)
    suffixes = {"records": "parquet", "tally": "tally", "function": "hush", "picture": "png"}
    files = {name: str(place / f"payroll.{suffix}") for name, suffix in suffixes.items()}
    seconds: dict[str, float] = {}

    @contextmanager
    def timed(step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds[step] = round(time.perf_counter() - start, 3)

    with timed("generate"):
        column = write_payroll(Path(files["records"]), records=number, seed=seed).reshape(-1, 1)
    with timed("tally"):
        salaries = RecordFiles((files["records"],), columns=("salary",), bounds=SALARY_BOUNDS)
        kernel = KernelSpec(bandwidth=BANDWIDTH)
        tally_records(salaries, files["tally"], kernel=kernel, progress=progress)
    with timed("release"):
        release_tally(files["tally"], Destination(files["function"]), ReleaseRequest(epsilon=epsilon))
    with timed("query"):
        answers = query_points(files["function"], [[each] for each in QUERIES], QueryTerms(sum=True))
    function = open_function(files["function"])
    with timed("exact sums"):
        truth = function.kernel.exact_sum(column, np.array(QUERIES).reshape(-1, 1))
    with timed("picture"):
        _draw(files, column)
    return DemoDone(files, function.claim, function.kernel, answers, tuple(truth.tolist()), seconds)


def _draw(files: dict[str, str], salaries: Floats) -> None:
    function = open_function(files["function"])
    x = np.linspace(*SALARY_BOUNDS, _CURVE_POINTS)
    answers = function.query(x.reshape(-1, 1), of="sum")
    exact_at = np.linspace(*SALARY_BOUNDS, _TRUTH_POINTS)
    exact = function.kernel.exact_sum(salaries, exact_at.reshape(-1, 1))
    curve = Curve(x, answers.value, answers.lower, answers.upper, answers.level, truth=(exact_at, exact))
    title = "A made-up payroll: people paid about as much, true and released"
    labels = ("yearly salary", answer_in_words(function.kernel, "sum"))
    save_figure(Picture(title, function.claim.sentence(), curve, labels).figure(), files["picture"])


SALARY_BOUNDS: Final = (0.0, 250_000.0)
"""Declared, as an owner would: what a salary may be, without looking at any."""


GROUPS: Final = {
    "care": (0.20, 29_000, 0.12),
    "trade": (0.26, 41_000, 0.14),
    "office": (0.22, 55_000, 0.10),
    "engineering": (0.20, 92_000, 0.13),
    "medicine": (0.09, 146_000, 0.11),
    "management": (0.03, 195_000, 0.16),
}
"""The modes of the mixture: the share of people, their median salary, and the spread of its logarithm."""


def write_payroll(path: Path, *, records: int, seed: int) -> NDArray[np.float64]:
    """Write a Parquet file with a job group and a yearly salary a row; returns the salaries.

    The same seed gives the same salaries on every machine.
    """
    random = np.random.default_rng(seed)
    share, median, spread = np.array(list(GROUPS.values())).T
    group = random.choice(len(GROUPS), size=records, p=share)
    factor = np.exp(spread[group] * random.standard_normal(records))
    salary = np.clip(median[group] * factor, *SALARY_BOUNDS).round(2)
    pa = pyarrow()
    names = pa.DictionaryArray.from_arrays(pa.array(group.astype(np.int8)), pa.array(list(GROUPS)))
    table = pa.table({"job": names, "salary": salary})
    pyarrow("parquet").write_table(table, path, row_group_size=1 << 16)
    return np.asarray(salary, np.float64)
