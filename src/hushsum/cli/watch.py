"""``hushsum watch``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from hushsum.declaration import required, setting
from hushsum.operations import LedgerOptions, RecordFiles, Watch, Watcher, read_key, start_or_continue
from hushsum.planning import KernelSpec, TableSpec
from hushsum.privacy import PROMISE, RULE_ON_DELTA, STATED, ReleaseRequest
from hushsum.streams import StreamPlan, StreamRequest

from . import options
from .declared_options import Taking
from .output import tell, warnings_printed, write_result
from .release_report import confirm

_LONGEST_SLEEP = 60.0


def watch(
    source: str = typer.Argument(
        metavar="DIR|GLOB", help="A folder, or a quoted pattern such as 'incoming/*.csv', of record files."
    ),
    output: str = required("Folder for the .hush files of the steps.", metavar="DIR"),
    *,
    state: str = required("Confidential .stream file that the watch continues from.", metavar="PATH"),
    every: str = required("Time between two steps: day, week, month, hour, 6h, ….", metavar="PERIOD"),
    records: RecordFiles,
    kernel: KernelSpec,
    size: TableSpec,
    stream: Annotated[
        StreamRequest,
        Taking(
            ReleaseRequest, *PROMISE, *RULE_ON_DELTA, *STATED, "count_share", "rounded", "insecure_noise_seed"
        ),
    ],
    ledger: LedgerOptions,
    once: bool = setting(False, "Take the steps that are due and exit, as for cron."),
    yes: options.Yes = False,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    json: options.Json = False,
) -> None:
    """Follow a growing folder of files, and release one step per period, all under one claim.

    The first run starts a stream: it pays the claim for all steps, after a confirmation on a terminal. Each
    file is counted once, in the first step after it appears. Every period releases a step, also without new
    files. Steps that were missed are made up for at the next run. A file that breaks a rule, or was changed
    after it was counted, stops the command, and nothing is released before it is corrected.

    hushsum watch 'incoming/*.csv' --columns lon,lat --bounds -10:10,40:60 --method grid --kernel gaussian
    --bandwidth 0.5 --every day --horizon 365 --epsilon 1 --delta 1e-6 --state town.stream -o public/
    """
    sets = records.set_column is not None
    followed = Watch(
        source=source,
        state=Path(state),
        output=Path(output),
        every=every,
        records=records,
        kernel=kernel.for_records(method=size.method, sets=sets, rows=size.rows, width=size.width),
        size=size,
        stream=stream,
        ledger=ledger.given(),
    )
    key = read_key(encryption_key_file)
    interactive = sys.stdin.isatty() and not yes

    def approve(plan: StreamPlan) -> None:
        if interactive:
            tell(plan.claim.sentence())
            tell(f"{_all(plan)} together spend it, now; {_noise(plan)}.")
            confirm("Start the stream?", "Nothing was started, and nothing was spent.")

    new = not followed.state.exists()
    with warnings_printed():
        watcher = start_or_continue(followed, time.time(), encryption_key=key, approve=approve)
    if new:
        plan = watcher.stream.plan
        tell(plan.claim.sentence())
        tell(
            f"Started {followed.state} (CONFIDENTIAL). Step 1 is due at {watcher.clock.in_words(1)}. "
            f"{_all(plan)} together keep the claim; {_noise(plan)}."
        )
    try:
        with warnings_printed():
            _follow(watcher, once=once, threads=threads, json=json)
    finally:
        watcher.close()


def _follow(watcher: Watcher, *, once: bool, threads: int | None, json: bool) -> None:
    while True:
        written = watcher.run(time.time(), threads=threads)
        for step in written:
            last = "" if step.horizon is None else f" of {step.horizon}"
            text = f"step {step.step}{last}  {step.output}  until {step.period_end}"
            write_result(step, text, as_json=json)
        if watcher.stream.finished:
            tell("All steps have been released.")
            return
        if once:
            if not written:
                following = watcher.stream.released + 1
                tell(f"No step is due; step {following} is due at {watcher.clock.in_words(following)}.")
            return
        while (left := watcher.next_due - time.time()) > 0:
            time.sleep(min(left, _LONGEST_SLEEP))


def _all(plan: StreamPlan) -> str:
    return "All steps that there will ever be" if plan.horizon is None else f"All {plan.horizon} steps"


def _noise(plan: StreamPlan) -> str:
    most = "" if plan.horizon is not None else f" until step {plan.steps[-1]}"
    return f"a step has up to {plan.ratio:.2f} × the noise of one release{most}"
