"""``hushsum plan`` and ``hushsum benchmark``: the errors of methods, predicted and measured."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated

import typer

from hushsum.declaration import setting
from hushsum.methods import SUM, method_named
from hushsum.operations import (
    BenchmarkTerms,
    MethodMeasured,
    MethodsBenchmarked,
    PublicFile,
    RecordFiles,
    benchmark_methods,
    methods_needing_bounds,
    read_public,
)
from hushsum.planning import CENTRAL, KernelSpec, Option, Plan, PlanRequest, bytes_in_words
from hushsum.privacy import AUTO, Relation

from . import options
from .declared_options import Without
from .output import progress_bar, tell, write, write_json, write_table

# The mean kernel value of a place with many records, reported next to that of a place with few records.
BUSY = 0.1

# The defaults of ``hushsum tally --method race``.
_DEFAULTS: Mapping[str, object] = {"rows": 1000, "width": 1000}


def plan(
    request: PlanRequest,
    public: str | None = setting(None, "Public records that resemble the private ones.", metavar="FILE"),
    records_of_public: Annotated[
        RecordFiles,
        Without(
            *("bounds", "unit_column", "max_per_unit", "drop_missing"),
            *("dates", "date_format", "date_unit", "date_origin", "sheet"),
        ),
    ] = RecordFiles(),  # noqa: B008  # frozen
    json: options.Json = False,
) -> None:
    """Predict the error of a release before any budget is spent. Reads no private data.

    hushsum plan --records 241000 --dim 3 --epsilon 1 --bandwidth 5
    """
    files, kernel = records_of_public, request.declared_kernel
    assert isinstance(kernel, KernelSpec)
    named = kernel if files.set_column is None else kernel.for_records(sets=True)
    if public is not None:
        sample = PublicFile(public, files.columns, files.set_column, cells=files.cells)
        request = replace(request, public=read_public(sample))
    request = replace(request, kernel=named)
    planned = request.plan()
    unbounded = request.bounds is None and request.method == AUTO
    others = methods_needing_bounds(planned.kernel) if unbounded else ()
    if json:
        write_json(planned.as_json())
        return
    known = not planned.guessed and planned.best.move is None
    busier = known and public is None and request.error is None and planned.density < BUSY
    _write(planned, replace(request, density=BUSY).plan() if busier else None)
    if request.trust_model.name != CENTRAL:
        write("How such a release is made: docs/explanation/trust.md")
        return
    best = planned.best
    given: dict[str, object] = {
        **asdict(kernel),
        "bounds": request.bounds,
        "set-column": (files.set_column or "NAME") if named.takes_sets else None,
        "unit-column": None if request.max_per_unit is None else "NAME",
        "max-per-unit": request.max_per_unit,
    }
    for_release: dict[str, object] = {
        # A release plans for a typical density, so one that is planned for another names its method.
        "method": best.method if request.method != AUTO or request.density is not None else None,
        "purpose": None if best.move is None else request.purpose,
        "relation": None if request.relation == str(Relation.ADD_REMOVE) else request.relation,
        "steps": request.steps,
        # The number of hash rows can be chosen.
        "rows": best.rows if request.rows and "rows" in method_named(best.method).settings else None,
        "width": request.width,
        "epsilon": best.epsilon,
        "delta": best.delta or None,
        "rho": best.rho,
        # For means, a release chooses the same share itself.
        "count-share": best.count_share if planned.of == SUM and method_named(best.method).tally else None,
        "records": planned.records,
    }
    write(f"Release it with:\n  hushsum release FILE {_options(given | for_release)} -o NAME.hush")
    counted = [
        each
        for each in planned.options
        if each.requested and each.move is None and method_named(each.method).tally is not None
    ]
    if counted:
        several = min(counted, key=lambda each: each.error)
        # What is the default is left out.
        chosen = {"method": several.method, **given, **several.sizes}
        shown = {name: value for name, value in chosen.items() if value != _DEFAULTS.get(name)}
        write(f"Several sites count it with:\n  hushsum tally FILE {_options(shown)} -o NAME.tally")
    if others:
        write(f"With --bounds, {' or '.join(others)} can be used too, often with a smaller error.")


def _write(made: Plan, denser: Plan | None) -> None:
    shown = list(made.shown())
    best = shown.index(made.best)
    write_table(
        (
            *("", "method", "promise", "table", "noise", "approx", "error"),
            *(("sparse", "dense") if made.guessed else ("rel.",)),
            *("file", "build"),
        ),
        [("*" if i == best else "", *_cells(option, made)) for i, option in enumerate(shown)],
        left=3,
        best=best,
        dense=True,
    )
    for sentence in (made.in_words(), made.meaning()):
        write(textwrap.fill(sentence, 80))
    if len(made) > len(shown):
        write(f"{len(made) - len(shown)} more options are compared; --json lists them all.")
    if any(option.rounded for option in shown):
        write("The cells of a table with ~ are rounded: release it with --rounded.")
    same = ("method", "rows", "width", "epsilon", "mechanism")
    for option in () if denser is None else denser.options:
        # Sizes that follow from the density have no option of their own at another one.
        if denser is not None and all(getattr(option, name) == getattr(made.best, name) for name in same):
            share = _percent(option.error / denser.density)
            write(
                f"At mean kernel value {denser.density:.3g} the error of * is {option.error:.2g}, which is "
                f"{share}."
            )
            break


def _cells(option: Option, made: Plan) -> tuple[str, ...]:
    promise = f"ρ {option.rho:g}" if option.rho is not None else f"ε {option.epsilon:g}"
    return (
        option.method.removeprefix("fourier_") + (" ~" if option.rounded else ""),
        promise + (f" δ {_brief(f'{option.delta:g}')}" if option.delta else ""),
        f"{option.rows}×{option.width}",
        _brief(f"{option.noise:.1e}"),
        _brief(f"{option.approximation:.1e}"),
        _brief(f"{option.error:.1e}"),
        *(
            (_brief(f"{option.sparse_error:.1e}"), _brief(f"{option.dense_error:.1e}"))
            if made.guessed
            else (_percent(option.error / made.density),)
        ),
        bytes_in_words(option.size, digits=2),  # a prediction
        f"{option.seconds * 1000:.0f} ms" if option.seconds < 1 else f"{option.seconds:.3g} s",
    )


def _options(given: Mapping[str, object]) -> str:
    """Values as they are typed after their options."""
    return " ".join(
        f"--{name}" if value is True else f"--{name} {_text(value)}"
        for name, value in given.items()
        if value is not None and value is not False
    )


def _text(value: object) -> str:
    """A value as it is written after an option; steps of columns, with 0 for none."""
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], tuple):
            return ",".join(map(_text, value))
        return (":" if isinstance(value, tuple) and len(value) == 2 else ",").join(
            f"{each or 0:.10g}" for each in value
        )
    return shlex.quote(str(value))


def _percent(share: float) -> str:
    """A fraction in per cent with one decimal; fractions below 0.1 % have one significant digit."""
    return f"{share:.1%}" if share >= 0.001 else f"{100.0 * share:.1g}%"


def _brief(number: str) -> str:
    """Without the zero before a one-digit exponent."""
    return number.replace("e-0", "e-").replace("e+0", "e+")


def benchmark(
    *,
    file: str = typer.Argument(metavar="FILE", help="Public records: CSV, Parquet or Arrow."),
    terms: BenchmarkTerms,
    public: bool = setting(False, "Declare that these records are public; required."),
    kernel: Annotated[KernelSpec, Without("radius")] = KernelSpec(),  # noqa: B008  # frozen
    records: Annotated[RecordFiles, Without("unit_column", "max_per_unit", "set_column")] = RecordFiles(),  # noqa: B008
    json: options.Json = False,
) -> None:
    """Benchmark methods on public data: true errors, times and sizes. Refused for private data.

    True errors depend on the records and are not covered by any claim. Methods run with their defaults, and
    those that hushsum plan knows with the sizes that it chooses for the number of records.

    hushsum benchmark skin.parquet --public --columns R,G,B --epsilon 0.1,1 --bandwidth 3.5 --bounds 0:255
    """
    with progress_bar("benchmarking") as progress:
        measured = benchmark_methods(
            PublicFile(file, records.columns, cells=records.cells),
            replace(terms, bounds=records.bounds),
            kernel=kernel,
            public=public,
            progress=progress,
        )
    if json:
        write_json(measured.as_json())
        return
    _write_measured(measured)


def _write_measured(measured: MethodsBenchmarked) -> None:
    write_table(
        ("ε", "method", "mechanism", "error", "relative", "predicted", "build", "query", "file"),
        [
            *(_measured_cells(each) for each in measured.methods),
            *(
                ("", name, "not private", "0", "0", "", "", _seconds(seconds), "")
                for name, seconds in measured.exact_query_seconds.items()
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


def _measured_cells(each: MethodMeasured) -> tuple[str, ...]:
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
