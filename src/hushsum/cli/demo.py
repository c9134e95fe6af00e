"""``hushsum demo``: count, release, query and plot a synthetic payroll, and compare with the truth.

The truth stands beside the answers because the payroll is made up; for private data that would be a leak.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.declaration import setting
from hushsum.errors import UsageError
from hushsum.kernels import answer_in_words, positive_integer
from hushsum.operations import (
    Destination,
    QueryTerms,
    RecordFiles,
    open_function,
    query_points,
    release_tally,
    tally_records,
)
from hushsum.planning import KernelSpec
from hushsum.plotting import Curve, Picture, save_figure
from hushsum.privacy import ReleaseRequest
from hushsum.records import pyarrow
from hushsum.releases import ReleasedFunction

from . import options
from .output import progress_bar, write, write_facts, write_json, write_table

BANDWIDTH: Final = 5_000.0
QUERIES: Final = (20_000.0, 30_000.0, 42_000.0, 70_000.0, 92_000.0, 145_000.0, 220_000.0)
# Declared, as an owner would: what a salary may be, without looking at any.
SALARY_BOUNDS: Final = (0.0, 250_000.0)
# The modes of the mixture: the share of people, their median salary, and the spread of its logarithm.
GROUPS: Final = {
    "care": (0.20, 29_000, 0.12),
    "trade": (0.26, 41_000, 0.14),
    "office": (0.22, 55_000, 0.10),
    "engineering": (0.20, 92_000, 0.13),
    "medicine": (0.09, 146_000, 0.11),
    "management": (0.03, 195_000, 0.16),
}

_TRUTH_POINTS = 120
_CURVE_POINTS = 500
_MOST_RECORDS = 100_000_000


def demo(
    records: int = setting(200_000, "People on the synthetic payroll."),
    epsilon: float = setting(1.0, "ε of the release."),
    output: str = setting("demo", "Folder to write to.", metavar="DIR"),
    seed: int = setting(0, "Public seed of the payroll."),
    json: options.Json = False,
) -> None:
    """Release the salaries of a synthetic payroll, send some queries, and compare with the exact answers.

    hushsum demo
    """
    number = positive_integer("records", records, at_most=_MOST_RECORDS)
    place = Path(output)
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
    with timed("tally"), progress_bar("counting") as progress:
        salaries = RecordFiles((files["records"],), columns=("salary",), bounds=SALARY_BOUNDS)
        tally_records(salaries, files["tally"], kernel=KernelSpec(bandwidth=BANDWIDTH), progress=progress)
    with timed("release"):
        release_tally(files["tally"], Destination(files["function"]), ReleaseRequest(epsilon=epsilon))
    with timed("query"):
        answered = query_points(files["function"], [[each] for each in QUERIES], QueryTerms(sum=True))
    function = open_function(files["function"])
    with timed("exact sums"):
        truth = function.kernel.exact_sum(column, np.array(QUERIES).reshape(-1, 1))
    with timed("picture"):
        _draw(function, column, files["picture"])
    if json:
        answers = [{**each, "truth": at} for each, at in zip(answered.as_json(), truth.tolist(), strict=True)]
        claim = function.claim.in_numbers()
        write_json({"files": files, "claim": claim, "answers": answers, "seconds": seconds})
        return
    write(
        f"The salaries of {records:,} synthetic people were counted in one pass. The kernel sum over them\n"
        f"(bandwidth {BANDWIDTH:,.0f}) was released once. Further queries spend nothing.\n"
    )
    write(f"{function.claim.sentence()}\n")
    value, lower, upper = (answered.answers[name] for name in ("value", "lower", "upper"))
    shown = [
        (
            f"{at:,.0f}",
            f"{v:,.0f}",
            f"{low:,.0f} … {high:,.0f}",
            f"{true:,.0f}",
            f"{abs(v - true) / true:.1%}",
        )
        for at, v, low, high, true in zip(QUERIES, value, lower, upper, truth, strict=True)
    ]
    write_table(("salary", "released", "95% interval", "exact", "error"), shown)
    inside = int(np.count_nonzero((lower <= truth) & (truth <= upper)))
    write(
        f"{inside} of {len(truth)} intervals contain the exact value, "
        "which is known only because the payroll is synthetic.\n"
    )
    most = "most of it for the exact curve"
    facts = [
        ("records", f"{files['records']}  ({seconds['generate']:.2f} s to generate)"),
        ("tally", f"{files['tally']}  (CONFIDENTIAL, {seconds['tally']:.2f} s)"),
        ("function", f"{files['function']}  (public, {seconds['release']:.2f} s)"),
        ("plot", f"{files['picture']}  ({seconds['picture']:.2f} s, {most})"),
    ]
    write_facts(facts)
    write(f"\nQuery it yourself: {_this_command()} query {files['function']} --sum --at 60000")


def write_payroll(path: Path, *, records: int, seed: int) -> Floats:
    """Write a Parquet file with a job group and a yearly salary per row; returns the salaries.

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


def _draw(function: ReleasedFunction, salaries: Floats, output: str) -> None:
    x = np.linspace(*SALARY_BOUNDS, _CURVE_POINTS)
    answers = function.query(x.reshape(-1, 1), of="sum")
    exact_at = np.linspace(*SALARY_BOUNDS, _TRUTH_POINTS)
    exact = function.kernel.exact_sum(salaries, exact_at.reshape(-1, 1))
    curve = Curve(x, answers.value, answers.lower, answers.upper, answers.level, truth=(exact_at, exact))
    title = "A made-up payroll: people paid about as much, true and released"
    labels = ("yearly salary", answer_in_words(function.kernel, "sum"))
    save_figure(Picture(title, function.claim.sentence(), curve, labels).figure(), output)


def _this_command() -> str:
    """How the running command is called from here: by its name if the shell finds it, else by its path."""
    name = "hushsum"
    if shutil.which(name) is not None:
        return name
    started = Path(sys.argv[0])
    if started.stem != name or not started.is_file():
        return f"{shlex.quote(sys.executable)} -m hushsum"
    path = started.absolute()
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
