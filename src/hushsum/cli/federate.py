"""``hushsum federate``: one release of several sites' tallies, through a server that nobody trusts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hushsum.cli import options
from hushsum.cli.error_wording import Command, Group, help_of
from hushsum.cli.key_files import show_key_file
from hushsum.cli.output import tell, warn, write_facts, write_json
from hushsum.errors import UsageError

if TYPE_CHECKING:
    from hushsum.privacy.claim import Claim

federate = typer.Typer(
    name="federate",
    cls=Group,
    help="Release the sum of several sites' tallies through a server that learns the noisy sum only.",
    no_args_is_help=True,
)

_Terms = Annotated[str, typer.Option("--terms", metavar="FILE", help="The terms that all have agreed to.")]
_Wait = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", help="How long to wait for the others to start.")
]
_Lost = Annotated[
    float,
    typer.Option("--patience", metavar="SECONDS", help="Continue without a peer that is away for so long."),
]


def keys(
    file: Annotated[str, typer.Argument(help="The key file; created if it does not exist.")],
    json: options.Json = False,
) -> None:
    """Make the key pair of a site or of the server, and show its fingerprint.

    The file is the private key, with mode 0600. The fingerprint is the public key: send it to the others over
    an authenticated channel.

    hushsum federate keys hospital.key
    """
    show_key_file(file, json=json)


def terms(
    tally: Annotated[
        str, typer.Argument(metavar="TALLY", help="A tally of one site; only its public part is used.")
    ],
    sites: Annotated[
        list[str],
        typer.Option("--site", metavar="FINGERPRINT", help="The key of a site; once for each site."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The file of terms to write.")],
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="ε of the released sum.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="δ, with ε.")] = None,
    rho: Annotated[float | None, typer.Option("--rho", help="ρ, instead of ε and δ.")] = None,
    colluding: Annotated[
        int,
        typer.Option("--colluding", help="Sites that use what they know, alone or together with the server."),
    ] = 1,
    dropouts: Annotated[
        int, typer.Option("--dropouts", help="Sites that may leave before the sum is opened.")
    ] = 0,
    relation: Annotated[
        str, typer.Option("--relation", help="add/remove or replace: which datasets are neighbours.")
    ] = "add/remove",
    unit: Annotated[
        str | None, typer.Option("--unit", help="Whom the claim protects. [default: the tally's unit]")
    ] = None,
    rows: Annotated[int | None, typer.Option("--rows", help="Rows to publish. [default: all]")] = None,
    count_share: options.CountShare = 0.02,
    population: Annotated[
        int | None, typer.Option("--population", help="Declared number of units at all sites together.")
    ] = None,
    allow_large_delta: options.AllowLargeDelta = False,
    encryption_key_file: options.EncryptionKeyFile = None,
    json: options.Json = False,
) -> None:
    """Write the terms of one run: what is counted, what is promised, and who takes part.

    Terms are public. Every site reads them (federate show) before it takes part, and takes part in nothing
    else. Each site adds enough noise that the claim holds although --dropouts sites leave and --colluding of
    the others use what they know, alone or together with the server. A site knows its own noise: with
    --colluding 0 the claim does not hold against the sites themselves.

    hushsum federate terms a.tally --site 3f5a… --site 77c0… --site 91be… --epsilon 1 -o run.terms
    """
    from hushsum.jobs.federate import write_terms
    from hushsum.jobs.output_files import read_key
    from hushsum.privacy.release_request import ReleaseRequest

    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        unit=unit,
        rows="auto" if rows is None else rows,
        count_share=count_share,
        population=population,
        allow_large_delta=allow_large_delta,
    )
    written = write_terms(
        tally,
        request,
        sites,
        output,
        dropouts=dropouts,
        colluding=colluding,
        encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
    )
    if json:
        write_json(written.as_json())
        return
    agreed = written.terms
    write_facts(
        [
            ("terms", output),
            ("run", agreed.run),
            (
                "sites",
                f"{len(agreed.sites)}, of which {dropouts} may leave and {colluding} may use what they know",
            ),
            ("table", f"{agreed.basis.shape[0]} × {agreed.basis.shape[1]}, {agreed.ring_bits}-bit ring"),
            ("claim", agreed.claim.sentence()),
        ]
    )


def show(
    file: Annotated[str, typer.Argument(metavar="TERMS", help="A file of terms.")],
    json: options.Json = False,
) -> None:
    """Show the terms of a run: what is counted, what is promised, and the keys of the sites.

    Read them before taking part. Compare each fingerprint with the one that its site gave you: whoever wrote
    the terms could have named keys of their own, and the noise of those sites would be known to them.

    hushsum federate show run.terms
    """
    from hushsum.jobs.federate import read_terms, terms_as_json
    from hushsum.kernels.parameters import kernel_in_words
    from hushsum.privacy.claim import unit_in_words

    agreed = read_terms(file)
    if json:
        write_json(terms_as_json(agreed))
        return
    rows, width = agreed.basis.shape
    write_facts(
        [
            ("run", agreed.run),
            ("digest", agreed.digest.hex()),
            ("kernel", kernel_in_words(agreed.reading.kernel)),
            ("table", f"{agreed.basis.name}, {rows} × {width}, {agreed.ring_bits}-bit ring"),
            ("fingerprint", agreed.basis.fingerprint),
            ("unit", unit_in_words(agreed.unit, agreed.per_unit)),
            ("dropouts", f"{agreed.dropouts} of {len(agreed.sites)} sites may leave"),
            ("colluding", f"{agreed.colluding} of {len(agreed.sites)} sites may use what they know"),
            *(("site", each) for each in agreed.sites),
            ("claim", agreed.claim.sentence()),
        ]
    )


def server(
    terms: _Terms,
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="The server's key file.")],
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Address and port to listen on; port 0: any free port."
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The .hush file to write.")],
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="DIR", help="Folder for the states of runs. [default: OUTPUT.federate]"
        ),
    ] = None,
    wait: _Wait = 3600.0,
    patience: _Lost = 60.0,
    json: options.Json = False,
) -> None:
    """Carry the messages of one run, and write the released function.

    The server learns who takes part and the noisy sum, of at least as many sites as the terms require.
    Repeating the same command after a crash resumes the run; other terms begin a run of their own.

    hushsum federate server --terms run.terms --key server.key --listen 0.0.0.0:7000 -o all.hush
    """
    from hushsum.jobs.federate import default_state, run_server
    from hushsum.transport.addresses import Patience, parse_address

    address = parse_address(listen, "listen")
    made = run_server(
        terms,
        key,
        output,
        address,
        state=state or default_state(output),
        patience=Patience(wait=wait, transfer=max(patience, 60.0), lost=patience),
        log=tell,
        listening=lambda port: tell(f"listening on {address[0]}:{port}"),
    )
    if json:
        write_json(made.as_json())
        return
    count = len(made.terms.sites)
    write_facts(
        [
            ("function", made.file),
            ("sites", f"{len(made.survivors)} of {count}"),
            ("claim", made.terms.claim.sentence()),
        ]
    )


def site(
    tally: Annotated[str, typer.Argument(metavar="TALLY", help="This site's tally.")],
    terms: _Terms,
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="This site's key file.")],
    server: Annotated[
        str,
        typer.Option(
            "--server", metavar="HOST:PORT@FINGERPRINT", help="Where the server listens, and its key."
        ),
    ],
    sites: Annotated[
        list[str] | None,
        typer.Option(
            "--site",
            metavar="FINGERPRINT",
            help="The key of another site, from that site; once for each. Other keys are refused.",
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="DIR", help="Folder for the states of runs. [default: TALLY.federate]"
        ),
    ] = None,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    wait: _Wait = 3600.0,
    patience: _Lost = 600.0,
    json: options.Json = False,
) -> None:
    """Take part in one run with this site's tally.

    The site adds its share of noise and masks its table before anything leaves. Its ledger is debited first.
    Repeating the same command after a crash resumes the run: it neither spends again nor masks another table
    with the same keys. Other terms begin a run of their own.

    Terms are written by one party. With --site for every other site, terms that name any other key are
    refused before anything is spent.

    hushsum federate site a.tally --terms run.terms --key a.key --server host:7000@c4d1… --site 77c0…
    --site 91be… --ledger l.db --dataset a
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.federate import SiteChoice, default_state, join_as_site
    from hushsum.jobs.output_files import read_key
    from hushsum.transport.addresses import Patience, parse_address

    place, at, fingerprint = server.rpartition("@")
    if not at:
        raise UsageError(
            parameter="server",
            rule="must be HOST:PORT@FINGERPRINT",
            got="no fingerprint",
            remedy="the server's operator sees it with: hushsum federate keys",
        )
    choice = SiteChoice(
        tally=tally,
        terms=terms,
        key=key,
        server=fingerprint,
        state=state or default_state(tally),
        sites=sites,
        ledger=ledger_options(ledger, dataset),
        encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
    )
    if choice.ledger is None:
        warn("no ledger is given, so the privacy loss of this run is not recorded.")

    def approve(claim: Claim) -> None:
        if sites is None:
            warn(f"no --site is given: compare the keys of the sites with hushsum federate show {terms}")
        tell(f"Taking part under this claim: {claim.sentence()}")

    ended = join_as_site(
        choice,
        parse_address(place, "server"),
        patience=Patience(wait=wait, transfer=60.0, lost=patience),
        log=tell,
        approve=approve,
    )
    if json:
        write_json(ended.as_json())
        return
    facts = [("run", ended.run), ("claim", ended.claim.sentence())]
    if ended.idempotency_key is not None:
        facts.append(("ledger entry", ended.idempotency_key))
    write_facts(facts)


_COMMANDS: Final[tuple[Callable[..., None], ...]] = (keys, terms, show, server, site)
for each in _COMMANDS:
    federate.command(cls=Command, help=help_of(each))(each)
