"""``hushsum benchmark``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Without
from hushsum.cli.output import progress_bar, tell, write, write_json, write_table
from hushsum.declaration import common
from hushsum.operations import (
    BenchmarkTerms,
    MethodMeasured,
    MethodsBenchmarked,
    PublicFile,
    RecordFiles,
    benchmark_methods,
)
from hushsum.planning import KernelSpec, bytes_in_words


def benchmark(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Public records: CSV, Parquet or Arrow.")],
    epsilon: Annotated[str, common("ε, or several.", metavar="E[,E...]")],
    public: Annotated[bool, common("Declare that these records are public; required.")] = False,
    delta: options.Delta = None,
    kernel: Annotated[KernelSpec, Without("radius")] = KernelSpec(),  # noqa: B008  # frozen
    records: Annotated[RecordFiles, Without("unit_column", "max_per_unit", "set_column")] = RecordFiles(),  # noqa: B008
    methods: Annotated[
        str | None,
        common(
            "auto, or names such as race, grid, mwem; default: all that can release the kernel.",
            metavar="NAMES",
        ),
    ] = None,
    queries: Annotated[int, common("Queries, drawn from the records.")] = 500,
    repeats: Annotated[int, common("Releases to average over.")] = 3,
    json: options.Json = False,
) -> None:
    """Benchmark methods on public data: true errors, times and sizes. Refused for private data.

    True errors depend on the records and are not covered by any claim. Methods run with their defaults, and
    those that hushsum plan knows with the sizes that it chooses for the number of records.

    hushsum benchmark skin.parquet --public --columns R,G,B --epsilon 0.1,1 --bandwidth 3.5 --bounds 0:255
    """
    terms = BenchmarkTerms(
        epsilons=options.numbers(epsilon, "epsilon"),
        delta=delta,
        bounds=records.bounds,
        methods=options.names(methods, "methods"),
        queries=queries,
        repeats=repeats,
    )
    with progress_bar("benchmarking") as progress:
        measured = benchmark_methods(
            PublicFile(file, records.columns, cells=records.cells),
            terms,
            kernel=kernel,
            public=public,
            progress=progress,
        )
    if json:
        write_json(measured.as_json())
        return
    _write(measured)


def _write(measured: MethodsBenchmarked) -> None:
    write_table(
        ("ε", "method", "mechanism", "error", "relative", "predicted", "build", "query", "file"),
        [
            *(_cells(each) for each in measured.measured),
            *(
                ("", name, "not private", "0", "0", "", "", _seconds(seconds), "")
                for name, seconds in measured.exact.items()
            ),
        ],
        left=3,
        dense=True,
    )
    write(
        f"Mean errors of f(q)/N at queries from the {measured.records:,} records; mean kernel value "
        f"{measured.density:.3g}.\nFor public data alone: on private data this table would be a leak."
    )
    for name, reason in measured.left_out.items():
        tell(f"skipped: {name}: {reason}")


def _cells(each: MethodMeasured) -> tuple[str, ...]:
    promise = f"{each.epsilon:g}" + (f", δ {each.delta:g}" if each.delta else "")
    noise = each.mechanism if each.relation == "add/remove" else f"{each.mechanism} ({each.relation})"
    return (
        promise,
        each.method,
        noise.replace("discrete ", ""),
        f"{each.error:.1e}",
        f"{each.relative:.1%}",
        "" if each.predicted is None else f"{each.predicted:.1e}",
        _seconds(each.build),
        _seconds(each.query),
        bytes_in_words(each.size),
    )


def _seconds(seconds: float) -> str:
    for unit, many in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= many:
            return f"{seconds / many:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
