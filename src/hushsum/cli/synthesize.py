"""``hushsum synthesize``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Without
from hushsum.cli.output import warnings_printed
from hushsum.cli.release_report import Confirmation
from hushsum.declaration import common
from hushsum.operations import LedgerOptions, RecordFiles


def synthesize(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Private records with these columns: CSV, Parquet, Arrow or a workbook; - reads CSV from "
            "standard input.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="The synthetic table, by its suffix: .parquet, .arrow or .csv."),
    ],
    records: Annotated[
        RecordFiles,
        Without(*("columns", "bounds", "set_column"), *("dates", "date_format", "date_unit", "date_origin")),
    ],
    ledger: LedgerOptions,
    epsilon: Annotated[float, common("ε of the release.")],
    delta: Annotated[
        float | None, common("δ; with it the noise is smaller. Without it the claim is pure ε.")
    ] = None,
    declare: Annotated[
        str | None, common("JSON file with a declaration of each column, by its name.", metavar="FILE")
    ] = None,
    number: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH[:BINS][:whole]",
            help="A column of numbers, drawn as whole ones if so declared; may be repeated.",
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B,...", help="A column of categories; may be repeated."),
    ] = None,
    flag: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A column of true and false; may be repeated.")
    ] = None,
    marginals: Annotated[str, common("Pairs to release: all, tree (chosen privately), or auto.")] = "auto",
    rows: Annotated[
        int | None, common("How many records to draw; default: the released number.", at_least=1)
    ] = None,
    model: Annotated[
        str | None, common("Where to keep the model; default: beside the table.", metavar="FILE")
    ] = None,
    seed: Annotated[int | None, common("Public seed of the fit and the draws; default: random.")] = None,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Make a synthetic table of private records. This spends privacy budget and cannot be undone.

    Columns are declared in a file, {"age": {"kind": "numbers", "low": 0, "high": 120, "bins": 24}, "sex":
    {"kind": "categories", "values": ["f", "m"]}}, or by options. Types of the table follow from the
    declarations. The model is kept as a .hush file: hushsum sample draws further tables from it, which spends
    nothing.

    hushsum synthesize visits.parquet --number age=0:120:24:whole --category sex=f,m --epsilon 1 \
--delta 1e-6 -o synthetic.parquet
    """
    from hushsum.operations.models import declarations
    from hushsum.operations.models import synthesize as run

    columns = declarations(declare, number or [], category or [], flag or [])
    given = {
        "epsilon": epsilon,
        "delta": delta,
        "marginals": marginals,
        "max_per_unit": records.max_per_unit,
        "random_state": seed,
    }
    confirmation = Confirmation(output, yes=yes, of_model=True)
    with warnings_printed():
        made = run(
            files,
            output,
            columns,
            {name: value for name, value in given.items() if value is not None},
            model_output=model,
            rows=rows,
            seed=seed,
            unit_column=records.unit_column,
            cells=records.cells,
            interactive=confirmation.interactive,
            approve=confirmation.approve,
            ledger=ledger.given(),
        )
    released = confirmation.confirmed(None if made is None else made.released)
    assert made is not None
    facts = [
        ("table", made.output),
        ("rows", str(made.rows)),
        ("expected error", f"{made.expected_error:.3g} total variation per pair of columns, on average"),
        ("claim", repr(released.claim)),
    ]
    confirmation.report(released, facts, json=json, result=made)
