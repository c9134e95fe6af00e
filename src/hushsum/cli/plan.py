"""``hushsum plan``."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.output import bytes_in_words, write, write_json, write_table

if TYPE_CHECKING:
    from hushsum.jobs.plan_release import ReleasePlanned
    from hushsum.planning import Option, Plan

BUSY = 0.1
"""The mean kernel value of a place with many records, reported next to that of a place with few records."""

_DEFAULTS: Mapping[str, object] = {"rows": 1000, "width": 1000}
"""The defaults of ``hushsum tally --method race``."""


def plan(
    records: Annotated[
        int, typer.Option("--records", help="Declared or guessed; the true number is private.")
    ],
    dim: Annotated[int | None, typer.Option("--dim", help="Columns of a record.")] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E[,E...]", help="ε, or several to compare.")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option("--error", help="Find the smallest ε with this predicted mean error."),
    ] = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    kernel: options.KernelName = None,
    bandwidth: options.Bandwidth = None,
    scale: options.Scale = None,
    power: options.Power = None,
    bits: options.Bits = None,
    projection: options.Projection = None,
    smoothness: options.Smoothness = None,
    radius: options.Radius = None,
    rows: Annotated[str | None, typer.Option("--rows", metavar="R[,R...]", help="Rows to compare.")] = None,
    width: Annotated[int | None, typer.Option("--width", help="Cells per row.")] = None,
    method: options.PlannedMethod = "auto",
    bounds: options.BoundsText = None,
    steps: options.StepsText = None,
    density: Annotated[
        float | None,
        typer.Option(
            "--density", help="Mean kernel value at the queries of interest. [default: a typical one]"
        ),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option("--public", metavar="FILE", help="Public records that resemble the private ones."),
    ] = None,
    columns: options.Columns = None,
    decimal: options.Decimal = ".",
    missing: options.Missing = None,
    encoding: options.Encoding = "utf-8",
    set_column: options.SetColumn = None,
    relation: options.RelationName = "add/remove",
    max_per_unit: Annotated[
        int | None, typer.Option("--max-per-unit", help="Maximum number of records per person.")
    ] = None,
    trust: Annotated[
        str,
        typer.Option(
            "--trust",
            help="Who sees records: central, federated, sites, shuffled or local.",
            autocompletion=options.completing("central", "federated", "sites", "shuffled", "local"),
        ),
    ] = "central",
    sites: Annotated[int | None, typer.Option("--sites", help="Number of sites that count.")] = None,
    dropouts: Annotated[
        int, typer.Option("--dropouts", help="Sites that may fail, with --trust federated.")
    ] = 0,
    colluding: Annotated[
        int | None,
        typer.Option(
            "--colluding",
            help="Sites that use what they know, with --trust federated. [default: 1]",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Predict the error of a release before any budget is spent. Reads no private data.

    hushsum plan --records 241000 --dim 3 --epsilon 1 --bandwidth 5
    """
    from hushsum.jobs.kernel_and_method import KernelChoice
    from hushsum.jobs.plan_release import PublicFile, plan_release
    from hushsum.methods.registry import default_kernel, method_named
    from hushsum.planning.error_by_trust import TrustModel

    source = None
    if public is not None:
        cells = option_values.cell_format(decimal=decimal, encoding=encoding, missing=missing)
        source = PublicFile(public, option_values.names(columns, "columns"), set_column, cells=cells)
    box = option_values.box(bounds, "bounds")
    reports = TrustModel.of(trust, sites, dropouts, colluding).reported
    sets = set_column is not None
    name = kernel or default_kernel("race" if reports else method, sets=sets, rows=rows, width=width)
    choice = KernelChoice(name, bandwidth, power, bits, projection, smoothness, radius, scale, box)
    epsilons = None if epsilon is None else option_values.numbers(epsilon, "epsilon")
    counts = option_values.integers(rows, "rows")
    on_steps = None if steps is None else option_values.numbers(steps, "steps")

    def at(place: float | None) -> ReleasePlanned:
        return plan_release(
            records=records,
            kernel=choice,
            dim=dim,
            epsilon=epsilons,
            delta=delta,
            rho=rho,
            rows=counts,
            width=width,
            method=method,
            bounds=box,
            density=place,
            public=source,
            relation=relation,
            max_per_unit=max_per_unit,
            error=error,
            steps=on_steps,
            trust=trust,
            sites=sites,
            dropouts=dropouts,
            colluding=colluding,
        )

    planned = at(density)
    if json:
        write_json(planned.as_json())
        return
    busier = source is None and error is None and planned.plan.density < BUSY
    _write(planned.plan, at(BUSY).plan if busier else None)
    if trust != "central":
        write("How such a release is made: docs/explanation/trust.md")
        return
    given: dict[str, object] = {
        "kernel": None if name == default_kernel() else name,
        "bandwidth": bandwidth,
        "scale": scale,
        "power": power,
        "bits": bits,
        "projection": projection,
        "smoothness": smoothness,
        "radius": radius,
        "bounds": bounds,
        "set-column": (set_column or "NAME") if choice.takes_sets else None,
        "unit-column": None if max_per_unit is None else "NAME",
        "max-per-unit": max_per_unit,
    }
    best = planned.plan.best
    for_release: dict[str, object] = {
        # A release plans for a typical density, so one that is planned for another names its method.
        "method": best.method if method != "auto" or density is not None else None,
        "relation": None if relation == "add/remove" else relation,
        "steps": steps,
        "rows": best.rows if rows is not None and _has_rows(best) else None,
        "width": width,
    }
    write(f"Release it with:\n  {_release_command(planned.plan, given | for_release)}")
    counted = [
        each
        for each in planned.plan.options
        if each.requested and method_named(each.method).tally is not None
    ]
    if counted:
        several = min(counted, key=lambda each: each.error)
        write(f"Several sites count it with:\n  {_command(several, given)}")
    if bounds is None and method == "auto":
        others = planned.needing_bounds
        if others:
            write(f"With --bounds, {' or '.join(others)} can be used too, often with a smaller error.")


def _write(made: Plan, denser: Plan | None) -> None:
    shown = list(made.shown())
    best = shown.index(made.best)
    write_table(
        ("", "method", "promise", "table", "noise", "approx", "error", "rel.", "file", "build"),
        [("*" if i == best else "", *_cells(option, made.density)) for i, option in enumerate(shown)],
        left=3,
        best=best,
        dense=True,
    )
    meaning = (
        "Errors are mean absolute errors of the share of records near a point, f(q)/N. The "
        f"relative error is for places with {made.density:.3g} of all records near."
    )
    for sentence in (made.in_words(), meaning):
        write(textwrap.fill(sentence, 80))
    if any(map(_has_rows, shown)):
        rests = "a bound" if made.basis == "bound" else "an estimate from public data"
        write(f"The approximation error of hash rows is {rests}.")
    if len(made) > len(shown):
        write(f"{len(made) - len(shown)} more options are compared; --json lists them all.")
    if any(option.rounded for option in shown):
        write("The cells of a table with ~ are rounded: release it with --rounded.")
    same = ("method", "rows", "width", "epsilon", "mechanism")
    alike = [
        each
        for each in (() if denser is None else denser.options)
        if all(getattr(each, name) == getattr(made.best, name) for name in same)
    ]
    # Sizes that follow from the density have no option of their own at another one.
    if denser is not None and alike:
        error = alike[0].error
        write(
            f"At mean kernel value {denser.density:.3g} the error of * is {error:.2g}, which is "
            f"{_percent(error / denser.density)}."
        )


def _has_rows(option: Option) -> bool:
    """Whether its table is of hash rows, whose number can be chosen."""
    from hushsum.methods.registry import method_named

    return "rows" in method_named(option.method).settings


def _cells(option: Option, density: float) -> tuple[str, ...]:
    promise = f"ρ {option.rho:g}" if option.rho is not None else f"ε {option.epsilon:g}"
    return (
        option.method.removeprefix("fourier_") + (" ~" if option.rounded else ""),
        promise + (f" δ {_brief(f'{option.delta:g}')}" if option.delta else ""),
        f"{option.rows}×{option.width}",
        _brief(f"{option.noise:.1e}"),
        _brief(f"{option.approximation:.1e}"),
        _brief(f"{option.error:.1e}"),
        _percent(option.error / density),
        bytes_in_words(option.size, digits=2),  # a prediction
        f"{option.seconds * 1000:.0f} ms" if option.seconds < 1 else f"{option.seconds:.3g} s",
    )


def _command(option: Option, given: Mapping[str, object]) -> str:
    """The command that makes the tally of an option; what is the default is left out."""
    chosen: dict[str, object] = {"method": option.method, **given, **option.sizes}
    words = [
        f"--{name}" if value is True else f"--{name} {_text(value)}"
        for name, value in chosen.items()
        if value is not None and value != _DEFAULTS.get(name)
    ]
    return " ".join(["hushsum tally FILE", *words, "-o NAME.tally"])


def _release_command(made: Plan, given: Mapping[str, object]) -> str:
    """The command that plans and releases in one step."""
    best = made.best
    promise = {"epsilon": best.epsilon, "delta": best.delta or None, "rho": best.rho}
    chosen = {**given, **promise, "records": made.records}
    words = [f"--{name} {_text(value)}" for name, value in chosen.items() if value is not None]
    return " ".join(["hushsum release FILE", *words, "-o NAME.hush"])


def _text(value: object) -> str:
    """A value as it is written after an option; steps of columns, with 0 for none."""
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list):
        return ",".join(f"{each or 0:.10g}" for each in value)
    return shlex.quote(str(value))


def _percent(share: float) -> str:
    """With one decimal, and with as many as the first digit needs where it is less than that."""
    return f"{share:.1%}" if share >= 0.001 else f"{100.0 * share:.1g}%"


def _brief(number: str) -> str:
    """Without the zero before a one-digit exponent."""
    return number.replace("e-0", "e-").replace("e+0", "e+")
