"""``hushsum choose``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated, Any

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Reworded, Without
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.output import ask, tell, write, write_facts, write_json
from hushsum.cli.release_report import declined, warn_if_insecure
from hushsum.declaration import common
from hushsum.errors import UsageError
from hushsum.operations import STANDARD, LedgerOptions, RecordFiles, choose_bandwidth, choose_bounds
from hushsum.planning import KernelSpec
from hushsum.privacy import Claim, ReleaseRequest

_WHAT = ("bounds", "bandwidth")


def choose(
    what: Annotated[
        str, typer.Argument(help="bounds or bandwidth.", autocompletion=options.completing(*_WHAT))
    ],
    files: options.RecordFiles,
    request: Annotated[
        ReleaseRequest,
        Without("delta", "rho", "unit", "mechanism", "rows", "count_share", "rounded"),
        Without("population", "allow_large_delta"),
        Reworded(
            {"epsilon": "ε of the selection; a later release adds its own."},
            required=("epsilon",),
            listed=True,
        ),
    ],
    records: Annotated[RecordFiles, Without("bounds", "set_column")],
    ledger: LedgerOptions,
    kernel: Annotated[
        KernelSpec, Without("bandwidth", "scale", "bits", "projection", "smoothness", "radius")
    ],
    within: Annotated[
        str | None,
        common(
            "For bounds: the widest possible range, of all columns or of each; declared.",
            metavar="LOW:HIGH[,...]",
        ),
    ] = None,
    tail: Annotated[float, common("For bounds: the fraction of the records outside on either side.")] = 0.01,
    grid: Annotated[int, common("For bounds: number of equal steps of the range.")] = 1000,
    candidates: Annotated[
        str | None, common("For a bandwidth: declared candidates.", metavar="NUMBERS")
    ] = None,
    density: Annotated[float, common("For a bandwidth: the mean kernel value of two records.")] = 0.05,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Choose bounds or a bandwidth from the private records. This spends privacy budget and cannot be undone.

    The files must fit into memory. The claim is shown first; on a terminal the command requests confirmation.

    hushsum choose bounds skin.parquet --columns R,G,B --within 0:1000 --epsilon 0.1

    hushsum choose bandwidth skin.parquet --columns R,G,B --candidates 1,5,25 --epsilon 0.1
    """
    if what not in _WHAT:
        raise UsageError("what", "must be bounds or bandwidth", got=f"{what!r}")
    records = replace(records, paths=tuple(files))
    if ledger.given() is not None:
        request = replace(request, budget=ledger.budget(), idempotency_key=ledger.idempotency_key)
    approve = _approve if sys.stdin.isatty() and not yes else None
    with interruptible_input() if STANDARD in files else nullcontext():
        chosen: Any
        if what == "bounds":
            box = options.ranges(within, "within")
            if box is None:
                raise UsageError(
                    "bounds",
                    "are chosen within a declared range",
                    got="none",
                    remedy="give --within such as 0:255",
                )
            chosen = choose_bounds(records, request, within=box, tail=tail, grid=grid, approve=approve)
        else:
            listed = options.numbers(candidates or "", "candidates")
            if not listed:
                raise UsageError(
                    "candidates",
                    "must be declared to choose a bandwidth from",
                    got="none",
                    remedy="such as 1,5,25",
                )
            chosen = choose_bandwidth(
                records, request, kernel=kernel, candidates=listed, density=density, approve=approve
            )
    if chosen is None:
        declined("Nothing was chosen, and nothing was spent.")
    warn_if_insecure(chosen.claim, "choice")
    if json:
        write_json(chosen.as_json())
        return
    write(chosen.claim.sentence() + "\n")
    write_facts([*chosen.facts(), ("claim", repr(chosen.claim))])


def _approve(claim: Claim) -> bool:
    tell(claim.sentence())
    return ask("Choose?")
