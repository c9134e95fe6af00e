"""``hushsum choose``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.option_values import cell_format
from hushsum.cli.output import ask, tell, warn, write, write_facts, write_json
from hushsum.cli.release_report import DECLINED
from hushsum.errors import UsageError

if TYPE_CHECKING:
    from hushsum.jobs.private_choice_of_parameters import Approve, BoundsChosen, ChoiceTerms, KernelChosen
    from hushsum.jobs.record_files import RecordFiles
    from hushsum.privacy.claim import Claim

_WHAT = ("bounds", "bandwidth")


def choose(
    what: Annotated[
        str, typer.Argument(help="bounds or bandwidth.", autocompletion=options.completing(*_WHAT))
    ],
    files: options.RecordFiles,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="ε of the selection; a later release adds its own.")
    ],
    columns: options.Columns = None,
    decimal: options.Decimal = ".",
    drop_missing: options.DropMissing = False,
    missing: options.Missing = None,
    dates: options.Dates = None,
    date_format: options.DatePattern = None,
    date_unit: options.DateUnit = "days",
    date_origin: options.DateOrigin = "1970-01-01",
    sheet: options.Sheet = None,
    encoding: options.Encoding = "utf-8",
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            metavar="LOW:HIGH[,...]",
            help="For bounds: the widest possible range, of all columns or of each; declared.",
        ),
    ] = None,
    tail: Annotated[
        float, typer.Option("--tail", help="For bounds: the fraction of the records outside on either side.")
    ] = 0.01,
    grid: Annotated[
        int, typer.Option("--grid", help="For bounds: number of equal steps of the range.")
    ] = 1000,
    candidates: Annotated[
        str | None,
        typer.Option("--candidates", metavar="NUMBERS", help="For a bandwidth: declared candidates."),
    ] = None,
    density: Annotated[
        float, typer.Option("--density", help="For a bandwidth: the mean kernel value of two records.")
    ] = 0.05,
    kernel: options.KernelName = None,
    power: options.Power = None,
    relation: options.RelationName = "add/remove",
    unit_column: options.UnitColumn = None,
    max_per_unit: options.MaxPerUnit = None,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: options.Yes = False,
    insecure_noise_seed: options.InsecureNoiseSeed = None,
    json: options.Json = False,
) -> None:
    """Choose bounds or a bandwidth from the private records. This spends privacy budget and cannot be undone.

    The files must fit into memory. The claim is shown first; on a terminal the command requests confirmation.

    hushsum choose bounds skin.parquet --columns R,G,B --within 0:1000 --epsilon 0.1

    hushsum choose bandwidth skin.parquet --columns R,G,B --candidates 1,5,25 --epsilon 0.1
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.output_files import STANDARD
    from hushsum.jobs.private_choice_of_parameters import ChoiceTerms
    from hushsum.jobs.record_files import RecordFiles

    if what not in _WHAT:
        raise UsageError(
            parameter="what",
            rule="must be bounds or bandwidth",
            got=f"{what!r}",
            remedy="name one of them",
        )
    recorded = ledger_options(ledger, dataset, idempotency_key, to, part)
    terms = ChoiceTerms(
        epsilon,
        relation,
        max_per_unit,
        budget=None if recorded is None else recorded.budget(),
        idempotency_key=idempotency_key,
        insecure_noise_seed=insecure_noise_seed,
    )
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
    records = RecordFiles(
        tuple(files),
        option_values.names(columns, "columns"),
        unit_column,
        cells=cells,
    )
    ask = _ask if sys.stdin.isatty() and not yes else None
    with interruptible_input() if STANDARD in files else nullcontext():
        chosen: BoundsChosen | KernelChosen | None
        if what == "bounds":
            chosen = _bounds(records, terms, within, tail, grid, ask)
        else:
            chosen = _bandwidth(records, terms, kernel, power, candidates, density, ask)
    if chosen is None:
        tell("Nothing was chosen, and nothing was spent.")
        raise typer.Exit(DECLINED)
    if not terms.claim.secure:
        warn("this choice protects nobody: its noise can be computed from its seed.")
    write_json(chosen.as_json()) if json else _write(chosen, terms)


def _bounds(
    records: RecordFiles,
    terms: ChoiceTerms,
    within: str | None,
    tail: float,
    grid: int,
    ask: Approve | None,
) -> BoundsChosen | None:
    from hushsum.jobs.private_choice_of_parameters import choose_bounds

    box = option_values.ranges(within, "within")
    if box is None:
        raise UsageError(
            parameter="bounds",
            rule="are chosen within a declared range",
            got="none",
            remedy="give --within such as 0:255",
        )
    return choose_bounds(records, terms, within=box, tail=tail, grid=grid, approve=ask)


def _bandwidth(
    records: RecordFiles,
    terms: ChoiceTerms,
    kernel: str | None,
    power: int | None,
    candidates: str | None,
    density: float,
    ask: Approve | None,
) -> KernelChosen | None:
    from hushsum.jobs.kernel_and_method import KernelChoice
    from hushsum.jobs.private_choice_of_parameters import choose_bandwidth
    from hushsum.methods.registry import default_kernel

    listed = option_values.numbers(candidates or "", "candidates")
    if not listed:
        raise UsageError(
            parameter="candidates",
            rule="must be declared to choose a bandwidth from",
            got="none",
            remedy="such as 1,5,25",
        )
    return choose_bandwidth(
        records,
        terms,
        kernel=KernelChoice(kernel or default_kernel(), power=power),
        candidates=listed,
        density=density,
        approve=ask,
    )


def _ask(claim: Claim) -> bool:
    tell(claim.sentence())
    return ask("Choose?")


def _write(chosen: BoundsChosen | KernelChosen, terms: ChoiceTerms) -> None:
    from hushsum.jobs.private_choice_of_parameters import BoundsChosen
    from hushsum.kernels.parameters import kernel_in_words

    write(terms.claim.sentence() + "\n")
    facts = [("claim", repr(terms.claim))]
    if isinstance(chosen, BoundsChosen):
        option = ",".join(f"{low:g}:{high:g}" for low, high in chosen.bounds)
        named = [
            (name, f"{low:g} to {high:g}")
            for name, (low, high) in zip(chosen.columns, chosen.bounds, strict=True)
        ]
        write_facts([*named, ("option", f"--bounds {option}"), *facts])
    else:
        write_facts([("kernel", kernel_in_words(chosen.choice.candidate)), *facts])
