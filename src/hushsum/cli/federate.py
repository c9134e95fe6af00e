"""``hushsum federate``: one release of several sites' tallies, through a server that nobody trusts."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.declaration import required
from hushsum.kernels import kernel_in_words
from hushsum.operations import read_key
from hushsum.parties import Identity, ParticipantPatience, PartySpec, Patience, parse_address
from hushsum.parties.secure_aggregation import (
    SiteRequest,
    TermsRequest,
    join_as_site,
    read_terms,
    run_server,
    terms_as_json,
    write_terms,
)
from hushsum.privacy import PROMISE, RULE_ON_DELTA, STATED, Claim, ReleaseRequest, unit_in_words

from . import options
from .declared_options import Taking, Without, command_group
from .output import tell, warn, write_result
from .summarize import show_secret_file


def keys(
    file: str = typer.Argument(help="The key file; created if it does not exist."), json: options.Json = False
) -> None:
    """Make the key pair of a site or of the server, and show its fingerprint.

    The file is the private key, with mode 0600. The fingerprint is the public key: send it to the others over
    an authenticated channel.

    hushsum federate keys hospital.key
    """
    show_secret_file(file, Identity, "fingerprint", "keep it secret", json=json)


def terms(
    *,
    tally: str = typer.Argument(metavar="TALLY", help="A tally of one site; only its public part is used."),
    sites: list[str] = typer.Option(
        ..., "--site", metavar="FINGERPRINT", help="The key of a site; once for each site."
    ),
    output: str = required("The file of terms to write."),
    request: Annotated[
        TermsRequest, Taking(ReleaseRequest, *PROMISE, *RULE_ON_DELTA, *STATED, "unit", "rows", "count_share")
    ],
    encryption_key_file: options.EncryptionKeyFile = None,
    json: options.Json = False,
) -> None:
    """Write the terms of one run: what is counted, what is promised, and who takes part.

    Terms are public. Every site reads them (federate show) before it takes part, and takes part in nothing
    else. Each site adds enough noise that the claim holds although --dropouts sites leave and --colluding of
    the others collude, also with the server. A site knows its own noise: with --colluding 0 the claim does
    not hold against the sites themselves.

    hushsum federate terms a.tally --site 3f5a… --site 77c0… --site 91be… --epsilon 1 -o run.terms
    """
    key = read_key(encryption_key_file)
    agreed = write_terms(tally, request, sites, output, encryption_key=key)
    write_result(
        {"file": output, **terms_as_json(agreed)},
        [
            ("terms", output),
            ("run", agreed.run),
            ("sites", f"{len(agreed.sites)}: {agreed.dropouts} may leave, {agreed.colluding} may collude"),
            ("table", f"{agreed.basis.shape[0]} × {agreed.basis.shape[1]}, {agreed.ring_bits}-bit ring"),
            ("claim", agreed.claim.sentence()),
        ],
        as_json=json,
    )


def show(
    file: str = typer.Argument(metavar="TERMS", help="A file of terms."), json: options.Json = False
) -> None:
    """Show the terms of a run: what is counted, what is promised, and the keys of the sites.

    Read them before taking part. Compare each fingerprint with the one that its site gave you: whoever wrote
    the terms could have named keys of their own, and the noise of those sites would be known to them.

    hushsum federate show run.terms
    """
    agreed = read_terms(file)
    rows, width = agreed.basis.shape
    write_result(
        terms_as_json(agreed),
        [
            ("run", agreed.run),
            ("digest", agreed.digest.hex()),
            ("kernel", kernel_in_words(agreed.reading.kernel)),
            ("table", f"{agreed.basis.name}, {rows} × {width}, {agreed.ring_bits}-bit ring"),
            ("fingerprint", agreed.basis.fingerprint),
            ("unit", unit_in_words(agreed.unit, agreed.per_unit)),
            ("dropouts", f"{agreed.dropouts} of {len(agreed.sites)} sites may leave"),
            ("colluding", f"{agreed.colluding} of {len(agreed.sites)} sites may collude"),
            *(("site", each) for each in agreed.sites),
            ("claim", agreed.claim.sentence()),
        ],
        as_json=json,
    )


def server(
    *,
    terms: str = required("The terms that all have agreed to.", metavar="FILE"),
    listen: options.Listen,
    output: str = required("The .hush file to write."),
    party: PartySpec,
    waiting: Patience,
    json: options.Json = False,
) -> None:
    """Carry the messages of one run, and write the released function.

    The server learns who takes part and the noisy sum, of at least as many sites as the terms require.
    Repeating the same command after a crash resumes the run; other terms begin a run of their own.

    hushsum federate server --terms run.terms --key server.key --listen 0.0.0.0:7000 -o all.hush
    """
    where = parse_address(listen, "listen")
    made = run_server(
        terms,
        party,
        output,
        where,
        patience=waiting,
        log=tell,
        listening=lambda port: tell(f"listening on {where.host}:{port}"),
    )
    write_result(
        made,
        [
            ("function", made.file),
            ("sites", f"{len(made.survivors)} of {len(made.terms.sites)}"),
            ("claim", made.terms.claim.sentence()),
        ],
        as_json=json,
    )


def site(
    tally: str = typer.Argument(metavar="TALLY", help="This site's tally."),
    *,
    server: str = required("Where the server listens, and its key.", metavar="HOST:PORT@FINGERPRINT"),
    request: Annotated[SiteRequest, Without("idempotency_key", "to", "part")],
    waiting: ParticipantPatience,
    sites: list[str] | None = typer.Option(
        None,
        "--site",
        metavar="FINGERPRINT",
        help="The key of another site, from that site; once for each. Other keys are refused.",
    ),
    encryption_key_file: options.EncryptionKeyFile = None,
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
    where = parse_address(server, "server", pinned=True)
    if request.ledger.given() is None:
        warn("no ledger is given, so the privacy loss of this run is not recorded.")

    def approve(claim: Claim) -> None:
        if sites is None:
            warn(
                "no --site is given: compare the keys of the sites with hushsum federate show "
                f"{request.terms}"
            )
        tell(f"Taking part under this claim: {claim.sentence()}")

    ended = join_as_site(
        request,
        tally,
        where,
        sites=sites,
        encryption_key=read_key(encryption_key_file),
        patience=waiting,
        log=tell,
        approve=approve,
    )
    facts = [("run", ended.run), ("claim", ended.claim.sentence())]
    if ended.idempotency_key is not None:
        facts.append(("ledger entry", ended.idempotency_key))
    write_result(ended, facts, as_json=json)


federate = command_group(
    "federate",
    "Release the sum of several sites' tallies through a server that learns the noisy sum only.",
    *(keys, terms, show, server, site),
)
