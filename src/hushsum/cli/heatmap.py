"""``hushsum heatmap``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Without
from hushsum.cli.output import counting, write_result
from hushsum.cli.release_report import Confirmation
from hushsum.declaration import common
from hushsum.errors import UsageError
from hushsum.operations import (
    LedgerOptions,
    MapChoice,
    RecordFiles,
    draw_heat_map,
    is_released,
    make_heat_map,
)
from hushsum.planning import MethodSpec
from hushsum.privacy import ReleaseRequest


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
    request: Annotated[ReleaseRequest, Without("unit", "mechanism", "rows", "count_share", "rounded")],
    records: Annotated[
        RecordFiles, Without("set_column", "dates", "date_format", "date_unit", "date_origin")
    ],
    method: Annotated[MethodSpec, Without("method", "width", "steps", "seed")],
    ledger: LedgerOptions,
    bandwidth: Annotated[
        float | None,
        common("Distance over which points are smoothed: metres, or units of the columns with --plane."),
    ] = None,
    plane: Annotated[bool, common("The columns lie in a plane; they are no longitude and latitude.")] = False,
    size: Annotated[int, common("Pixels along each side of pictures and rasters.")] = 512,
    level: options.Level = 0.95,
    yes: options.Yes = False,
    allow_clipping: options.AllowClipping = False,
    threads: options.Threads = None,
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
    choice = MapChoice(bandwidth, records.bounds, not plane, size, level)
    if len(sources) == 1 and is_released(sources[0]):
        if ledger.given() is not None or (request.epsilon, request.delta, request.rho) != (None, None, None):
            raise UsageError(
                "epsilon",
                "must be left out for a .hush file, whose maps spend nothing",
                remedy="leave it out, or give the file of points",
            )
        drawn = draw_heat_map(sources[0], output, choice)
        write_result(drawn, [("map", each) for each in drawn.outputs], as_json=json)
        return
    confirmation = Confirmation(output[0], yes=yes)
    with counting(sources, allow_clipping=allow_clipping) as progress:
        made = make_heat_map(
            replace(records, paths=tuple(sources)),
            output,
            request,
            choice,
            declared_records=method.records,
            threads=threads,
            progress=progress,
            approve=confirmation.approve,
            ledger=ledger.given(),
        )
    released = confirmation.confirmed(None if made is None else made.released)
    assert made is not None
    facts = [("claim", repr(released.claim)), *(("map", each) for each in made.outputs)]
    confirmation.report(released, facts, json=json, result=made)
