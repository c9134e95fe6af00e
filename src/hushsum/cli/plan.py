"""``hushsum plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import options, values
from hushsum.cli.output import write, write_json, write_table
from hushsum.cli.sizes import bytes_in_words

if TYPE_CHECKING:
    from hushsum.planning.plan import Option, Plan


def plan(
    records: Annotated[
        int, typer.Option("--records", help="Declared or guessed; the true number is private.")
    ],
    dim: Annotated[int | None, typer.Option("--dim", help="Columns of a record.")] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E[,E...]", help="ε, or several to compare.")
    ] = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    kernel: options.KernelName = "euclidean",
    bandwidth: options.Bandwidth = None,
    power: options.Power = None,
    bits: options.Bits = None,
    projection: options.Projection = None,
    rows: Annotated[str | None, typer.Option("--rows", metavar="R[,R...]", help="Rows to compare.")] = None,
    width: Annotated[int, typer.Option("--width", help="Cells of a row.")] = 1000,
    density: Annotated[
        float | None,
        typer.Option("--density", help="Mean kernel value of the queries that matter. [default: 0.01]"),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option("--public", metavar="FILE", help="Public records that resemble the private ones."),
    ] = None,
    columns: options.Columns = None,
    set_column: options.SetColumn = None,
    relation: options.RelationName = "add/remove",
    max_per_unit: Annotated[
        int | None, typer.Option("--max-per-unit", help="Records of a person, at most.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Predict the error of a release before any budget is spent. Reads no private data.

    hushsum plan --records 241000 --dim 3 --epsilon 1 --bandwidth 5
    """
    from hushsum.jobs.kernel_choice import KernelChoice
    from hushsum.jobs.plan_release import PublicFile, plan_release

    source = None
    if public is not None:
        source = PublicFile(public, values.names(columns, "--columns"), set_column)
    planned = plan_release(
        records=records,
        kernel=KernelChoice(kernel, bandwidth, power, bits, projection),
        dim=dim,
        epsilon=None if epsilon is None else values.numbers(epsilon, "--epsilon"),
        delta=delta,
        rho=rho,
        rows=values.integers(rows, "--rows"),
        width=width,
        density=density,
        public=source,
        relation=relation,
        max_per_unit=max_per_unit,
    )
    write_json(planned.as_json()) if json else _write(planned.plan)


def _write(made: Plan) -> None:
    options_shown = list(made)
    best = options_shown.index(made.best)
    write_table(
        (
            "",
            "method",
            "mechanism",
            "promise",
            "rows",
            "noise",
            "hashing",
            "error",
            "relative",
            "file",
            "build",
        ),
        [("*" if i == best else "", *_cells(option, made.density)) for i, option in enumerate(options_shown)],
        left=4,
        best=best,
    )
    rests = "a bound" if made.basis == "bound" else "an estimate from public data"
    write(
        f"Mean absolute error of f(q)/N for {made.records:,} records at mean kernel value "
        f"{made.density:.3g}; the hashing part is {rests}. * is best for what was asked."
    )


def _cells(option: Option, density: float) -> tuple[str, ...]:
    promise = f"ρ = {option.rho:g}" if option.rho is not None else f"ε = {option.epsilon:g}"
    return (
        option.method,
        option.mechanism,
        promise + (f", δ = {option.delta:g}" if option.delta else ""),
        str(option.rows),
        f"{option.noise:.2e}",
        f"{option.hashing:.2e}",
        f"{option.error:.2e}",
        f"{option.error / density:.1%}",
        bytes_in_words(option.size),
        f"{option.seconds * 1000:.0f} ms" if option.seconds < 1 else f"{option.seconds:.3g} s",
    )
