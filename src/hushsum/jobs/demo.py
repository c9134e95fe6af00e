"""The main job from end to end on generated data: count, release, ask, draw, and compare with the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.jobs.kernel_choice import KernelChoice
from hushsum.jobs.method_choice import TableSize
from hushsum.jobs.open_function import open_function
from hushsum.jobs.payroll import SALARY_BOUNDS, write_payroll
from hushsum.jobs.progress import Progress
from hushsum.jobs.query_function import AnsweredQueries, QueryTerms, query_points
from hushsum.jobs.release_tally import release_tally
from hushsum.jobs.tally_records import RecordFiles, tally_records
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import positive_integer
from hushsum.plotting.curve import Curve, draw_curve
from hushsum.plotting.figure import new_figure, save_figure
from hushsum.privacy.claim import Claim
from hushsum.privacy.request import ReleaseRequest
from hushsum.releases.picture import caption_of

BANDWIDTH: Final = 5_000.0
QUERIES: Final = (20_000.0, 30_000.0, 42_000.0, 70_000.0, 92_000.0, 145_000.0, 220_000.0)
_ROWS = 4000
_WIDTH = 256
"""A salary has about 50 hash values at this bandwidth, so that few of them share one of so many cells."""
_TRUTH_POINTS = 120
_CURVE_POINTS = 500
_MOST_RECORDS = 100_000_000

Floats = NDArray[np.float64]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class DemoDone:
    """What was made, how the answers compare with the truth, and how long each step took."""

    files: dict[str, str]
    claim: Claim
    kernel: Kernel
    answers: AnsweredQueries
    truth: tuple[float, ...]
    seconds: dict[str, float]

    @property
    def inside(self) -> int:
        """How many intervals hold the truth."""
        truth = np.array(self.truth)
        return int(np.count_nonzero((self.answers.lower <= truth) & (truth <= self.answers.upper)))

    def as_json(self) -> dict[str, Any]:
        """The demonstration for a machine."""
        return {
            "files": self.files,
            "claim": self.claim.in_numbers(),
            "answers": [
                {**each, "truth": truth}
                for each, truth in zip(self.answers.as_json(), self.truth, strict=True)
            ],
            "seconds": self.seconds,
        }


def run_demo(
    folder: str = "demo",
    *,
    records: int = 200_000,
    epsilon: float = 1.0,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DemoDone:
    """Generate a payroll in ``folder`` and release the function of its salaries.

    The truth stands beside the answers because the payroll is made up; for private data that comparison would
    be a leak.
    """
    number = positive_integer("records", records, at_most=_MOST_RECORDS)
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise UsageError(
            parameter="output",
            rule="must be the path of a folder",
            got="a file",
            remedy="give another",
        )
    place.mkdir(parents=True, exist_ok=True)
    files = {
        name: str(place / f"payroll.{suffix}")
        for name, suffix in (
            ("records", "parquet"),
            ("tally", "tally"),
            ("function", "hush"),
            ("picture", "png"),
        )
    }
    clock = _Clock()
    salaries = clock.time(
        "generate", lambda: write_payroll(Path(files["records"]), records=number, seed=seed)
    )
    clock.time(
        "tally",
        lambda: tally_records(
            RecordFiles((files["records"],), columns=("salary",)),
            files["tally"],
            kernel=KernelChoice("euclidean", bandwidth=BANDWIDTH),
            size=TableSize("race", _ROWS, _WIDTH, seed, SALARY_BOUNDS),
            threads=threads,
            progress=progress,
        ),
    )
    clock.time(
        "release", lambda: release_tally(files["tally"], files["function"], ReleaseRequest(epsilon=epsilon))
    )
    answers = clock.time(
        "query", lambda: query_points(files["function"], [[each] for each in QUERIES], QueryTerms(sum=True))
    )
    function = open_function(files["function"])
    column = salaries.reshape(-1, 1)
    truth = clock.time(
        "exact sums", lambda: function.kernel.exact_sum(column, np.array(QUERIES).reshape(-1, 1))
    )
    clock.time("picture", lambda: _draw(files, column))
    return DemoDone(files, function.claim, function.kernel, answers, tuple(truth.tolist()), clock.seconds)


def _draw(files: dict[str, str], salaries: Floats) -> None:
    function = open_function(files["function"])
    x = np.linspace(*SALARY_BOUNDS, _CURVE_POINTS)
    answers = function.query(x.reshape(-1, 1), of="sum")
    exact_at = np.linspace(*SALARY_BOUNDS, _TRUTH_POINTS)
    exact = function.kernel.exact_sum(salaries, exact_at.reshape(-1, 1))
    figure, axes = new_figure(
        title="A made-up payroll: people paid about as much, true and released",
        caption=caption_of(function.claim, ""),
    )
    curve = Curve(x, answers.value, answers.lower, answers.upper, answers.level, truth=(exact_at, exact))
    draw_curve(axes, curve, x_label="yearly salary", y_label="kernel sum f(q)")
    save_figure(figure, files["picture"])


class _Clock:
    """Seconds of each step, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, step: str, work: Callable[[], Result]) -> Result:
        start = time.perf_counter()
        result = work()
        self.seconds[step] = round(time.perf_counter() - start, 3)
        return result
