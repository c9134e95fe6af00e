"""``hushsum query``."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Without
from hushsum.cli.output import short, write_answers, write_json, write_table
from hushsum.declaration import common
from hushsum.errors import Parameter, UsageError
from hushsum.operations import EdgeColumns, QueryTerms, RecordFiles, query_file, query_nodes, query_points


def query(
    function: options.ReleasedFile,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUES", help="A point such as 120,80,60, or the members of a set; may be repeated."
        ),
    ] = None,
    points: Annotated[
        str | None, common("Points in CSV, Parquet or Arrow; - reads CSV.", metavar="FILE")
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A node of the graph given by --graph; may be repeated."),
    ] = None,
    graph: Annotated[
        str | None, common("Public edge list, in which --node is looked up.", metavar="FILE")
    ] = None,
    *,
    edges: Annotated[EdgeColumns, Without("nodes", "sorted")],
    records: Annotated[RecordFiles, Without("bounds", "unit_column", "max_per_unit", "drop_missing")],
    terms: QueryTerms,
    json: options.Json = False,
) -> None:
    """Query a released function. This spends nothing.

    Points given by --at are answered in a table. Points of a file are answered as CSV, with the columns of
    the file first, while the file is read.

    hushsum query skin.hush --at 120,80,60

    hushsum query hired.hush --dates hired --at 2024-05-31
    """
    if sum(each is not None for each in (at, points, node)) != 1:
        raise UsageError(
            "at",
            ("or ", Parameter("points"), " or ", Parameter("node"), " must be given, one of them"),
            got="several or none",
        )
    if (node is None) != (graph is None):
        raise UsageError("node", ("and ", Parameter("graph"), " go together"), got="one of them")
    head = {"of": terms.of, "level": terms.level}
    if points is not None:
        chosen: Any = {"columns": records.columns, "set_column": records.set_column, "cells": records.cells}
        answer = partial(query_file, function, points, terms, **chosen)
        write_answers(answer, points, as_json=json, head=head)
        return
    if node is not None and graph is not None:
        answered = query_nodes(function, node, graph, terms, columns=edges.columns, directed=edges.directed)
    else:
        typed = [options.point_with_dates(each, "at") for each in at or []]
        answered = query_points(function, typed, terms, records.cells.dates)
    if json:
        write_json({**head, "answers": answered.as_json()})
        return
    rows = zip(at or node or [], *answered.answers.values(), strict=True)
    write_table(
        ("at", *answered.answers),
        [(text, *("–" if math.isnan(each) else short(each) for each in numbers)) for text, *numbers in rows],
        left=1,
    )
