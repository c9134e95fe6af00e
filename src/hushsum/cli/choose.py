"""``hushsum choose``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.declared_options import Without
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.output import ask, tell, warn, write, write_facts, write_json
from hushsum.cli.release_report import DECLINED
from hushsum.errors import UsageError
from hushsum.operations import LedgerOptions, RecordFiles
from hushsum.planning import KernelSpec

if TYPE_CHECKING:
    from hushsum.operations import Approve, BoundsChosen, ChoiceTerms, KernelChosen
    from hushsum.privacy import Claim

_WHAT = ("bounds", "bandwidth")


def choose(
    what: Annotated[
        str, typer.Argument(help="bounds or bandwidth.", autocompletion=options.completing(*_WHAT))
    ],
    files: options.RecordFiles,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="ε of the selection; a later release adds its own.")
    ],
    records: Annotated[RecordFiles, Without("bounds", "set_column")],
    ledger: LedgerOptions,
    kernel: Annotated[
        KernelSpec, Without("bandwidth", "scale", "bits", "projection", "smoothness", "radius")
    ] = KernelSpec(),  # noqa: B008  # frozen
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
    relation: options.RelationName = "add/remove",
    yes: options.Yes = False,
    insecure_noise_seed: options.InsecureNoiseSeed = None,
    json: options.Json = False,
) -> None:
    """Choose bounds or a bandwidth from the private records. This spends privacy budget and cannot be undone.

    The files must fit into memory. The claim is shown first; on a terminal the command requests confirmation.

    hushsum choose bounds skin.parquet --columns R,G,B --within 0:1000 --epsilon 0.1

    hushsum choose bandwidth skin.parquet --columns R,G,B --candidates 1,5,25 --epsilon 0.1
    """
    from hushsum.operations import STANDARD, ChoiceTerms

    if what not in _WHAT:
        raise UsageError("what", "must be bounds or bandwidth", got=f"{what!r}")
    recorded = ledger.given()
    terms = ChoiceTerms(
        epsilon,
        relation,
        records.max_per_unit,
        budget=None if recorded is None else recorded.budget(),
        idempotency_key=ledger.idempotency_key,
        insecure_noise_seed=insecure_noise_seed,
    )
    records = replace(records, paths=tuple(files))
    ask = _ask if sys.stdin.isatty() and not yes else None
    with interruptible_input() if STANDARD in files else nullcontext():
        chosen: BoundsChosen | KernelChosen | None
        if what == "bounds":
            chosen = _bounds(records, terms, within, tail, grid, ask)
        else:
            chosen = _bandwidth(records, terms, kernel, candidates, density, ask)
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
    from hushsum.operations import choose_bounds

    box = option_values.ranges(within, "within")
    if box is None:
        raise UsageError(
            "bounds", "are chosen within a declared range", got="none", remedy="give --within such as 0:255"
        )
    return choose_bounds(records, terms, within=box, tail=tail, grid=grid, approve=ask)


def _bandwidth(
    records: RecordFiles,
    terms: ChoiceTerms,
    kernel: KernelSpec,
    candidates: str | None,
    density: float,
    ask: Approve | None,
) -> KernelChosen | None:
    from hushsum.operations import choose_bandwidth

    listed = option_values.numbers(candidates or "", "candidates")
    if not listed:
        raise UsageError(
            "candidates", "must be declared to choose a bandwidth from", got="none", remedy="such as 1,5,25"
        )
    return choose_bandwidth(
        records,
        terms,
        kernel=kernel,
        candidates=listed,
        density=density,
        approve=ask,
    )


def _ask(claim: Claim) -> bool:
    tell(claim.sentence())
    return ask("Choose?")


def _write(chosen: BoundsChosen | KernelChosen, terms: ChoiceTerms) -> None:
    from hushsum.kernels import kernel_in_words
    from hushsum.operations import BoundsChosen

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
