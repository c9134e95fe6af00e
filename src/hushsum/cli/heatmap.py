"""``hushsum heatmap``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.output import bytes_of, progress_bar, warnings_printed, write_facts, write_json
from hushsum.cli.release_report import asking, confirmed, report
from hushsum.errors import UsageError


def heatmap(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Points (CSV, Parquet or Arrow; - reads CSV from standard input), or a .hush file to draw.",
        ),
    ],
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            "-o",
            help="The map to write, by its suffix: .html, .png, .svg, .pdf, .geojson, .tif, .hush; "
            "may be repeated.",
        ),
    ],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    columns: options.Columns = None,
    bounds: options.BoundsText = None,
    bandwidth: Annotated[
        float | None,
        typer.Option(
            "--bandwidth",
            help="Distance over which points are smoothed: metres, or units of the columns with --plane.",
        ),
    ] = None,
    plane: Annotated[
        bool, typer.Option("--plane", help="The columns lie in a plane; they are no longitude and latitude.")
    ] = False,
    size: Annotated[
        int, typer.Option("--size", help="Pixels along each side of pictures and rasters.")
    ] = 512,
    level: options.Level = 0.95,
    records: Annotated[
        int | None,
        typer.Option("--records", help="Declared number of records, for the plan; the true one is private."),
    ] = None,
    unit_column: options.UnitColumn = None,
    max_per_unit: options.MaxPerUnit = None,
    decimal: options.Decimal = ".",
    drop_missing: options.DropMissing = False,
    missing: options.Missing = None,
    sheet: options.Sheet = None,
    encoding: options.Encoding = "utf-8",
    relation: options.RelationName = "add/remove",
    population: options.Population = None,
    allow_large_delta: options.AllowLargeDelta = False,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: options.Yes = False,
    allow_clipping: options.AllowClipping = False,
    threads: options.Threads = None,
    insecure_noise_seed: options.InsecureNoiseSeed = None,
    json: options.Json = False,
) -> None:
    """Make a private heat map of points. This spends privacy budget and cannot be undone.

    Distances are in metres for longitude and latitude, in that order. Where noise could explain what is seen,
    the map is hatched. The released function is kept as a .hush file beside the map; maps of a .hush file
    spend nothing.

    hushsum heatmap trips.csv --columns lon,lat --bounds -74.3:-73.7,40.5:40.9 --bandwidth 300 --epsilon 1 \
-o trips.html

    hushsum heatmap trips.hush -o trips.png -o trips.tif
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.heat_map import MapChoice, draw_heat_map, is_released, make_heat_map
    from hushsum.jobs.output_files import STANDARD
    from hushsum.jobs.record_files import RecordFiles
    from hushsum.privacy.release_request import ReleaseRequest
    from hushsum.records.data_derived_parameters import clipping_allowed

    choice = MapChoice(bandwidth, option_values.ranges(bounds, "bounds"), not plane, size, level)
    if len(sources) == 1 and is_released(sources[0]):
        if epsilon is not None or delta is not None or rho is not None or ledger is not None:
            raise UsageError(
                parameter="epsilon",
                rule="must be left out for a .hush file, whose maps spend nothing",
                remedy="leave it out, or give the file of points",
            )
        drawn = draw_heat_map(sources[0], output, choice)
        write_json(drawn.as_json()) if json else write_facts([("map", each) for each in drawn.outputs])
        return
    recorded = ledger_options(ledger, dataset, idempotency_key, to, part)
    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        population=population,
        allow_large_delta=allow_large_delta,
        insecure_noise_seed=insecure_noise_seed,
    )
    interactive = sys.stdin.isatty() and not yes
    piped = interruptible_input() if STANDARD in sources else nullcontext()
    clipped = clipping_allowed(allow_clipping)
    with warnings_printed(), clipped, piped, progress_bar("counting", size=bytes_of(sources)) as progress:
        made = make_heat_map(
            RecordFiles(
                tuple(sources),
                option_values.names(columns, "columns"),
                unit_column,
                cells=option_values.cell_format(
                    decimal=decimal,
                    drop_missing=drop_missing,
                    sheet=sheet,
                    encoding=encoding,
                    missing=missing,
                ),
            ),
            output,
            request,
            choice,
            max_per_unit=max_per_unit,
            declared_records=records,
            threads=threads,
            progress=progress,
            approve=asking(output[0]) if interactive else None,
            ledger=recorded,
        )
    released = confirmed(None if made is None else made.released, interactive=interactive)
    assert made is not None
    if json:
        write_json(made.as_json())
        return
    facts = [("claim", repr(released.claim)), *(("map", each) for each in made.outputs)]
    report(released, facts, json=False, interactive=interactive)
