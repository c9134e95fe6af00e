"""``hushsum summarize``: a summary of several owners' records, between processes that trust pinned keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hushsum.declaration import required
from hushsum.operations import check_output
from hushsum.parties import Identity, ParticipantPatience, Patience, parse_address
from hushsum.parties.summarization import (
    CuratorRequest,
    HashSecret,
    OwnerRequest,
    ValidationRequest,
    collect_summary,
    offer_records,
    release_validation,
)

from . import options
from .declared_options import Without, command_group
from .output import progress_bar, tell, warn, write, write_json, write_result

_OWN_ENTRY: Final = Without("idempotency_key", "to", "part")
_NO_LEDGER: Final = "no ledger is given, so the privacy loss of this {} is not recorded."


def keys(
    file: str = typer.Argument(help="The key file; created if it does not exist."), json: options.Json = False
) -> None:
    """Make a key pair for TLS, and show its fingerprint, which the other parties pin.

    The file is the private key, with mode 0600. The fingerprint is the public key: send it to the others over
    an authenticated channel.

    hushsum summarize keys owner.key
    """
    show_secret_file(file, Identity, "fingerprint", "keep it secret", json=json)


def secret(
    file: str = typer.Argument(help="The secret file; created if it does not exist."),
    json: options.Json = False,
) -> None:
    """Create the secret under which owners send hashes instead of points, and show its check value.

    One owner creates it and sends the file to the other owners and the consumer over a channel that the
    curator cannot read. The check value is the same for all of them. Use a new secret for every run. Hashes
    are not differentially private: they reveal all pairwise distances, and anyone who has the secret can
    recover the points.

    hushsum summarize secret owners.secret
    """
    show_secret_file(file, HashSecret, "check", "keep it from the curator", json=json)


def show_secret_file(file: str, kind: Any, public: str, warning: str, *, json: bool) -> None:
    """Create a file with a secret unless the file exists, and print the public value of the secret."""
    made = not Path(file).exists()
    if made:
        check_output(file)
    held = kind.create(file) if made else kind.load(file)
    shown = getattr(held, public)
    if json:
        write_json({"file": file, public: shown, "made": made})
        return
    tell(f"Made {file}; {warning}." if made else f"{file} exists and is unchanged.")
    write(shown)


def owner(
    file: str = typer.Argument(help="The records: CSV, Parquet or Arrow."),
    *,
    curator: str = required("Where the curator listens, and its key.", metavar="HOST:PORT@FINGERPRINT"),
    request: Annotated[OwnerRequest, _OWN_ENTRY],
    waiting: ParticipantPatience,
    json: options.Json = False,
) -> None:
    """Take part in one run with a file of private records.

    The owner connects to the holder of the pinned key and to nobody else. The curator is trusted and sees the
    points that are sent, or with --hashes their pairwise distances. The claim bounds what the other owners
    learn. The ledger is debited before anything is sent, and repeating the same command after a crash resumes
    the run instead of spending again.

    hushsum summarize owner data.parquet --curator curator.example:7000@3f5a… --key owner.key
    """
    where = parse_address(curator, "curator", pinned=True)
    if request.ledger.given() is None:
        warn(_NO_LEDGER.format("run"))
    ended = offer_records(request, file, where, patience=waiting, log=tell)
    facts = [("run", ended.run), ("rule", ended.rule), ("points sent", str(ended.points_sent))]
    facts += [("claim", repr(ended.claim)), *_entry(ended.idempotency_key)]
    write_result(ended, facts, as_json=json, claim=ended.claim)


def curator(
    *,
    owners: list[str] = typer.Option(
        ..., "--owner", metavar="FINGERPRINT", help="The key of an owner; once for each owner."
    ),
    listen: options.Listen,
    output: str = required("The Parquet file of points to write."),
    request: Annotated[CuratorRequest, _OWN_ENTRY],
    waiting: Patience,
    json: options.Json = False,
) -> None:
    """Collect a summary of the owners' records that resembles a validation set.

    Every owner runs hushsum summarize owner and has pinned this key. The summary contains original records of
    the owners and is for the consumer only; the claim bounds what owners learn about each other. Each round
    is drawn once and stored before it is sent, and repeating the same command after a crash resumes the run.
    With --ledger the release of the validation set is debited. With --hashes the curator sees neither points
    nor validation set, and the summary contains hashes.

    hushsum summarize curator --owner 3f5a… --owner 77c0… --listen 0.0.0.0:7000 --key curator.key
    --validation v.parquet --size 2000 --epsilon 2 --delta 1e-5 --bandwidth 3 -o summary.parquet
    """
    where, size = parse_address(listen, "listen"), request.run.size
    if request.pace <= 0:
        warn("without --pace the duration of a round reveals to every owner how long the others took.")
    with progress_bar("collecting") as progress:
        made = collect_summary(
            request,
            owners,
            output,
            where,
            patience=waiting,
            log=tell,
            progress=progress,
            listening=lambda port: tell(f"listening on {where.host}:{port}"),
        )
    for name, last in made.summary.lost.items():
        warn(
            f"owner {name[:12]}… was lost in round {last}; the summary does not contain its remaining points."
        )
    if len(made.summary.points) < size:
        warn(
            f"{len(made.summary.points)} of {size} points requested; give more --rounds, a larger ε, or more "
            "records of the owners and for --validation, or request fewer. Another run spends again."
        )
    summary = made.summary
    facts = [
        ("summary", f"{made.output}: {len(summary.points)} of {size} points"),
        ("rule", f"{made.terms.rule}, {made.terms.rounds} rounds"),
        ("all messages", repr(made.together)),
        ("owners' records", f"rho={summary.claims.owners.rho:.6g} of it"),
        ("validation records", f"rho={summary.claims.validation.rho:.6g} of it"),
        ("points seen", f"{summary.seen}, {summary.parsimony:.2f} times what is needed"),
        ("by owner", ", ".join(f"{name[:12]}… {count}" for name, count in made.by_owner.items())),
        ("lost owners", ", ".join(f"{name[:12]}…" for name in summary.lost) or "none"),
        *_entry(made.idempotency_key),
    ]
    write_result(made, facts, as_json=json, claim=made.together)


def _entry(key: str | None) -> list[tuple[str, str]]:
    return [] if key is None else [("idempotency key", key)]


def validation(
    *,
    file: str = typer.Argument(help="The validation set: CSV, Parquet or Arrow."),
    output: str = required("The release to write, for the curator."),
    request: Annotated[ValidationRequest, _OWN_ENTRY],
    json: options.Json = False,
) -> None:
    """Release a validation set under the owners' secret, for a curator that must not see it.

    The curator's command takes the file in place of a validation set, and the same --epsilon, --delta,
    --validation-share, --bandwidth and --features.

    hushsum summarize validation v.parquet --hashes owners.secret --epsilon 2 --delta 1e-5 --bandwidth 3
    -o v.target
    """
    if request.ledger.given() is None:
        warn(_NO_LEDGER.format("release"))
    made = release_validation(request, file, output)
    facts = [("release", made.output), ("columns", ", ".join(made.columns)), ("secret's check", made.check)]
    facts += [("claim", repr(made.claim)), *_entry(made.idempotency_key)]
    write_result(made, facts, as_json=json, claim=made.claim)


summarize = command_group(
    "summarize",
    "Collect a summary of several owners' private records that matches a validation set.",
    *(keys, owner, curator, secret, validation),
)
