"""``hushsum demo``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from hushsum.declaration import setting
from hushsum.operations import BANDWIDTH, DemoDone, run_demo

from . import options
from .output import progress_bar, write, write_facts, write_json, write_table


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
    with progress_bar("counting") as progress:
        done = run_demo(output, records=records, epsilon=epsilon, seed=seed, progress=progress)
    write_json(done.as_json()) if json else _write(done, records)


def _write(done: DemoDone, records: int) -> None:

    write(
        f"The salaries of {records:,} synthetic people were counted in one pass. The kernel sum over them\n"
        f"(bandwidth {BANDWIDTH:,.0f}) was released once. Further queries spend nothing.\n"
    )
    write(f"{done.claim.sentence()}\n")
    answers = [done.answered.answers[name] for name in ("value", "lower", "upper")]
    columns = zip(done.answered.points, *answers, done.truth, strict=True)
    write_table(
        ("salary", "released", "95% interval", "exact", "error"),
        [
            (
                f"{salary:,.0f}",
                f"{value:,.0f}",
                f"{lower:,.0f} … {upper:,.0f}",
                f"{truth:,.0f}",
                f"{abs(value - truth) / truth:.1%}",
            )
            for (salary,), value, lower, upper, truth in columns
        ],
    )
    write(
        f"{done.inside} of {len(done.truth)} intervals contain the exact value, "
        "which is known only because the payroll is synthetic.\n"
    )
    seconds = done.seconds
    write_facts(
        [
            ("records", f"{done.files['records']}  ({seconds['generate']:.2f} s to generate)"),
            ("tally", f"{done.files['tally']}  (CONFIDENTIAL, {seconds['tally']:.2f} s)"),
            ("function", f"{done.files['function']}  (public, {seconds['release']:.2f} s)"),
            (
                "plot",
                f"{done.files['picture']}  ({seconds['picture']:.2f} s, most of it for the exact curve)",
            ),
        ]
    )
    write(f"\nQuery it yourself: {_this_command()} query {done.files['function']} --sum --at 60000")


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
