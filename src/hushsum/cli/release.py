"""``hushsum release``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import reader_may_leave, tell, warn, write, write_facts, write_json
from hushsum.errors import UsageError

if TYPE_CHECKING:
    from hushsum.jobs.release_tally import FunctionReleased
    from hushsum.ledger import Account
    from hushsum.privacy.claim import Claim

DECLINED = 1
LARGE_EPSILON = 10.0


def release(
    tally: Annotated[str, typer.Argument(help="The .tally file.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The .hush file to write; - is standard output.")
    ],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    relation: options.RelationName = "add/remove",
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="'gamma radius': half the variance under pure ε for fourier_features, in real arithmetic.",
            autocompletion=options.completing("gamma radius"),
        ),
    ] = None,
    rows: Annotated[
        str,
        typer.Option(
            "--rows", metavar="auto|N", help="Rows to publish; auto chooses the best number for the budget."
        ),
    ] = "auto",
    count_share: Annotated[
        float, typer.Option("--count-share", help="Fraction of the budget for the noisy count.")
    ] = 0.02,
    rounded: Annotated[
        bool | None,
        typer.Option("--rounded", help="Round cells: a smaller file, and 2 % more variance of the noise."),
    ] = None,
    population: Annotated[
        int | None,
        typer.Option("--population", help="Declared number of records or persons, for the rule on δ."),
    ] = None,
    allow_large_delta: Annotated[
        bool, typer.Option("--allow-large-delta", help="Accept a δ of 1/(10 × units) or more.")
    ] = False,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not request confirmation.")] = False,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    insecure_noise_seed: Annotated[int | None, typer.Option("--insecure-noise-seed", hidden=True)] = None,
    json: options.Json = False,
) -> None:
    """Draw noise once and write a public function. This spends privacy budget and cannot be undone.

    The claim is shown first; on a terminal the command requests confirmation. Releasing a tally again spends
    again, also with the same output file. An existing .hush file is replaced, a tally never, and another file
    only after confirmation. With --ledger the dataset's budget is debited first, and repeating the same
    command after a crash resumes the release instead of spending again.

    hushsum release all.tally --epsilon 1 -o skin.hush
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.files import STANDARD, read_key
    from hushsum.jobs.release_tally import release_tally
    from hushsum.privacy.request import ReleaseRequest

    recorded = ledger_options(ledger, dataset, idempotency_key, to, part)
    piped = output == STANDARD
    if piped and json:
        raise UsageError(
            rule="the file and the JSON cannot both go to standard output",
            remedy="give a path, or leave --json out",
        )
    if piped and sys.stdout.isatty():
        raise UsageError(
            rule="the file is binary and standard output is a terminal", remedy="give a path, or redirect it"
        )
    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        mechanism=mechanism,
        rows=_rows(rows),
        count_share=count_share,
        rounded=rounded,
        population=population,
        allow_large_delta=allow_large_delta,
        insecure_noise_seed=insecure_noise_seed,
    )
    interactive = sys.stdin.isatty() and not yes
    with reader_may_leave():
        released = release_tally(
            tally,
            sys.stdout.buffer if piped else output,
            request,
            encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
            threads=threads,
            approve=asking(output) if interactive else None,
            ledger=recorded,
        )
    if released is None:
        tell("Nothing was released, and nothing was spent.")
        raise typer.Exit(DECLINED)
    if not released.claim.secure:
        warn("this release protects nobody: its noise can be computed from its seed.")
    if not interactive:
        warn_of(released.claim)
    if released.starved and rows == "auto":
        warn(
            f"only {released.rows} of {released.capacity} rows are published, because ε times the number of "
            "records is small; answers will be poor."
        )
    if json:
        write_json(released.as_json())
    elif piped:
        tell(released.claim.sentence())
        if released.record is not None:
            tell(left(released.record.account))
    else:
        _write(
            released, claim_shown=interactive and not (released.record is not None and released.record.again)
        )


def _rows(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def left(account: Account) -> str:
    """What an account has left, in words."""
    return f"{account.remaining.in_words()} left of {account.terms.budget.in_words()}"


def warn_of(claim: Claim) -> None:
    """Say so if a claim promises little."""
    if claim.epsilon is not None and claim.epsilon > LARGE_EPSILON:
        warn(f"ε = {claim.epsilon:g} promises little: above {LARGE_EPSILON:g}, hardly anything is hidden.")


def asking(output: str) -> Callable[[Claim, Account | None], bool]:
    """Show the claim, and what happens to a file that is there, and ask."""
    exists = Path(output).exists()

    def ask(claim: Claim, account: Account | None) -> bool:
        tell(claim.sentence())
        warn_of(claim)
        if exists and account is None:
            tell(f"{output!r} exists and will be replaced. Releasing again spends again.")
        elif exists:
            tell(f"{output!r} exists and will be replaced, unless it is this very release.")
        if account is not None:
            tell(f"After it the dataset has {left(account)}.")
        return typer.confirm("Release it?", default=False, err=True)

    return ask


def _write(released: FunctionReleased, *, claim_shown: bool) -> None:
    """Print the release; the claim's sentence unless it stands above the question already."""
    from hushsum.cli.output import bytes_in_words
    from hushsum.kernels.parameters import kernel_in_words

    if not claim_shown:
        write(released.claim.sentence() + "\n")
    facts = [
        ("released", f"{released.output} ({bytes_in_words(released.size)})"),
        ("claim", repr(released.claim)),
        ("kernel", kernel_in_words(released.function.kernel)),
        ("rows × width", f"{released.rows} × {released.width}"),
    ]
    record = released.record
    if record is not None:
        facts.append(("dataset", f"{record.dataset}: {left(record.account)}"))
        facts.append(("idempotency key", record.idempotency_key))
        if record.again:
            facts.append(("note", "this release was made before; its file is unchanged, nothing was spent"))
    write_facts(facts)
