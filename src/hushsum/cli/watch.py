"""``hushsum watch``."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.output import ask, tell, warnings_printed, write, write_json

if TYPE_CHECKING:
    from hushsum.jobs.watch_files import StepWritten, Watch, Watcher
    from hushsum.streams import StreamPlan

_LONGEST_SLEEP = 60.0
_DECLINED = 1


def watch(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|GLOB",
            help="A folder, or a quoted pattern such as 'incoming/*.csv', of record files.",
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder for the .hush files of the steps.")
    ],
    state: Annotated[
        str,
        typer.Option(
            "--state", metavar="PATH", help="Confidential .stream file that the watch continues from."
        ),
    ],
    every: Annotated[
        str,
        typer.Option(
            "--every", metavar="PERIOD", help="Time between two steps: day, week, month, hour, 6h, …."
        ),
    ],
    steps: Annotated[int, typer.Option("--steps", help="How many steps the claim covers.")],
    columns: options.Columns = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    window: Annotated[
        int | None, typer.Option("--window", help="Show the last so many steps instead of all.")
    ] = None,
    decay: Annotated[
        float | None,
        typer.Option("--decay", help="Show all steps, each with this part of the weight of the next one."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take the steps that are due and exit, as for cron.")
    ] = False,
    method: options.MethodName = None,
    kernel: options.KernelName = None,
    bandwidth: options.Bandwidth = None,
    scale: options.Scale = None,
    power: options.Power = None,
    bits: options.Bits = None,
    projection: options.Projection = None,
    smoothness: options.Smoothness = None,
    radius: options.Radius = None,
    bounds: options.BoundsText = None,
    rows: Annotated[int | None, typer.Option("--rows", help="Rows of a race table. [default: 1000]")] = None,
    width: Annotated[
        int | None, typer.Option("--width", help="Cells per row of a race table. [default: 1000]")
    ] = None,
    spacing: options.Spacing = None,
    degree: options.Degree = None,
    features: options.Features = None,
    groups: options.Groups = None,
    structured: options.Structured = None,
    seed: Annotated[int, typer.Option("--seed", help="Public seed of the random functions.")] = 0,
    unit_column: options.UnitColumn = None,
    max_per_unit: options.MaxPerUnit = None,
    set_column: options.SetColumn = None,
    decimal: options.Decimal = ".",
    drop_missing: options.DropMissing = False,
    missing: options.Missing = None,
    dates: options.Dates = None,
    date_format: options.DatePattern = None,
    date_unit: options.DateUnit = "days",
    date_origin: options.DateOrigin = "1970-01-01",
    sheet: options.Sheet = None,
    encoding: options.Encoding = "utf-8",
    relation: options.RelationName = "add/remove",
    count_share: options.CountShare = 0.02,
    rounded: Annotated[
        bool | None,
        typer.Option("--rounded", help="Round cells: a smaller file, and 2 % more variance of the noise."),
    ] = None,
    population: options.Population = None,
    allow_large_delta: options.AllowLargeDelta = False,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: options.Yes = False,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    insecure_noise_seed: options.InsecureNoiseSeed = None,
    json: options.Json = False,
) -> None:
    """Follow a growing folder of files, and release one step per period, all under one claim.

    The first run starts a stream: it pays the claim for all steps, and asks on a terminal. Each file is
    counted once, in the first step after it appears. Every period releases a step, also without new files.
    Steps that were missed are made up for at the next run. A file that breaks a rule, or was changed after it
    was counted, stops the command, and nothing is released before it is corrected.

    hushsum watch 'incoming/*.csv' --columns lon,lat --bounds -10:10,40:60 --method grid --kernel gaussian
    --bandwidth 0.5 --every day --steps 365 --epsilon 1 --delta 1e-6 --state town.stream -o public/
    """
    from pathlib import Path

    from hushsum.cli.option_values import cell_format
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.kernel_and_method import KernelChoice, TableSize
    from hushsum.jobs.output_files import read_key
    from hushsum.jobs.record_files import RecordFiles
    from hushsum.jobs.watch_files import Watch, start_or_continue
    from hushsum.methods.registry import default_kernel
    from hushsum.privacy.release_request import ReleaseRequest
    from hushsum.streams.start import StreamRequest

    cells = cell_format(
        decimal=decimal,
        drop_missing=drop_missing,
        dates=dates,
        date_format=date_format,
        date_unit=date_unit,
        date_origin=date_origin,
        sheet=sheet,
        encoding=encoding,
        missing=missing,
    )
    box = option_values.box(bounds, "bounds", cells.dates)
    name = kernel or default_kernel(method, sets=set_column is not None, rows=rows, width=width)
    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        count_share=count_share,
        rounded=rounded,
        population=population,
        allow_large_delta=allow_large_delta,
        insecure_noise_seed=insecure_noise_seed,
    )
    followed = Watch(
        source=source,
        state=Path(state),
        output=Path(output),
        every=every,
        records=RecordFiles(
            (),
            option_values.names(columns, "columns"),
            unit_column,
            set_column,
            cells=cells,
        ),
        kernel=KernelChoice(name, bandwidth, power, bits, projection, smoothness, radius, scale, box),
        size=TableSize(
            method,
            rows,
            width,
            seed,
            box,
            spacing,
            features,
            degree,
            None,
            groups,
            structured,
        ),
        stream=StreamRequest(request, steps, window, decay),
        max_per_unit=max_per_unit,
        ledger=ledger_options(ledger, dataset, idempotency_key, to, part),
    )
    key = None if encryption_key_file is None else read_key(encryption_key_file)
    approve = _ask if sys.stdin.isatty() and not yes else None
    new = not followed.state.exists()
    watcher = start_or_continue(followed, time.time(), encryption_key=key, approve=approve)
    if watcher is None:
        tell("Nothing was started, and nothing was spent.")
        raise typer.Exit(_DECLINED)
    if new:
        _tell_start(followed, watcher)
    try:
        with warnings_printed():
            _follow(watcher, once=once, threads=threads, json=json)
    finally:
        watcher.close()


def _follow(watcher: Watcher, *, once: bool, threads: int | None, json: bool) -> None:
    while True:
        written = watcher.run(time.time(), threads=threads)
        for step in written:
            write_json(step.as_json()) if json else _write(step)
        if watcher.finished:
            tell("All steps have been released.")
            return
        if once:
            if not written:
                following = watcher.stream.released + 1
                tell(f"No step is due; step {following} is due at {watcher.clock.in_words(following)}.")
            return
        while (left := watcher.next_due - time.time()) > 0:
            time.sleep(min(left, _LONGEST_SLEEP))


def _write(step: StepWritten) -> None:
    write(f"step {step.step} of {step.steps}  {step.output}  until {step.period_end}")


def _ask(plan: StreamPlan) -> bool:
    tell(plan.claim.sentence())
    tell(
        f"All {plan.steps} steps together spend it, now; a step has up to {plan.ratio:.2f} × the noise of "
        "one release."
    )
    return ask("Start the stream?")


def _tell_start(followed: Watch, watcher: Watcher) -> None:
    plan = watcher.stream.plan
    tell(plan.claim.sentence())
    tell(
        f"Started {followed.state} (CONFIDENTIAL). Step 1 of {plan.steps} is due at "
        f"{watcher.clock.in_words(1)}; steps have up to {plan.ratio:.2f} × the noise of one release."
    )
