"""``hushsum release``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import reader_may_leave, warn
from hushsum.cli.release_report import asking, confirmed, released_file, report


def release(
    tally: Annotated[str, typer.Argument(help="The .tally file.")],
    output: options.ReleaseOutput,
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
    population: options.Population = None,
    allow_large_delta: options.AllowLargeDelta = False,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: options.Yes = False,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    insecure_noise_seed: options.InsecureNoiseSeed = None,
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
    from hushsum.jobs.files import read_key
    from hushsum.jobs.release_tally import release_tally
    from hushsum.kernels.parameters import kernel_in_words
    from hushsum.privacy.request import ReleaseRequest

    recorded = ledger_options(ledger, dataset, idempotency_key, to, part)
    target = released_file(output, json=json)
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
        delivered = release_tally(
            tally,
            target,
            request,
            encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
            threads=threads,
            approve=asking(output) if interactive else None,
            ledger=recorded,
        )
    released = confirmed(delivered, interactive=interactive)
    if released.starved and rows == "auto":
        warn(
            f"only {released.rows} of {released.capacity} rows are published, because ε times the number of "
            "records is small; answers will be poor."
        )
    facts = [
        ("claim", repr(released.claim)),
        ("kernel", kernel_in_words(released.function.kernel)),
        ("rows × width", f"{released.rows} × {released.width}"),
    ]
    report(released, facts, json=json, interactive=interactive)


def _rows(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text
