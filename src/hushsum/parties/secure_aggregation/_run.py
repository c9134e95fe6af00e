"""Secure aggregation between sites as commands: agree on terms, run the server, take part as a site."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from hushsum.declaration import Parameter, check_fields
from hushsum.errors import AlreadyPublished, FileRefused, PeerLost, PeerRefused, UsageError
from hushsum.files import atomic_file
from hushsum.operations import LedgerOptions, check_output
from hushsum.parties._kept_state import EncryptedState, StateFolder
from hushsum.parties._runtime import (
    NO_LEDGER,
    Address,
    Coordinator,
    Log,
    Participant,
    PartySpec,
    Patience,
    listener,
)
from hushsum.parties._tls import Identity, fingerprint_of, short
from hushsum.parties.secure_aggregation._messages import MOST_TERMS, STEPS, AggregationTerms
from hushsum.parties.secure_aggregation._server import ServerState, released_sum
from hushsum.parties.secure_aggregation._site import SiteState
from hushsum.privacy import Booking, Claim, ReleaseRequest, StagedRelease, stage
from hushsum.tally import load_tally, sums_with_share

KEYS_COMMAND = "hushsum federate keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsRequest:
    """What the released sum promises, and against whom.

    A site knows its own share of noise: with ``colluding=0`` the claim does not hold against the sites
    themselves.
    """

    release: ReleaseRequest
    colluding: Annotated[
        int,
        Parameter(
            help="Number of colluding sites against which the claim holds, alone or with the server.",
            group="",
            at_least=0,
        ),
    ] = 1
    dropouts: Annotated[
        int, Parameter(help="Number of sites that may leave before the sum is opened.", group="", at_least=0)
    ] = 0

    def __post_init__(self) -> None:
        check_fields(self)


def terms_as_json(terms: AggregationTerms) -> dict[str, Any]:
    """What people agree on, for a machine."""
    return {
        "run": terms.run,
        "digest": terms.digest.hex(),
        "sites": list(terms.sites),
        "dropouts": terms.dropouts,
        "colluding": terms.colluding,
        "rows": terms.basis.shape[0],
        "width": terms.basis.shape[1],
        "fingerprint": terms.basis.fingerprint,
        "ring_bits": terms.ring_bits,
        "claim": terms.claim.in_numbers(),
    }


def write_terms(
    tally: str,
    request: TermsRequest,
    sites: Sequence[str],
    output: str,
    *,
    encryption_key: bytes | None = None,
) -> AggregationTerms:
    """Write the terms of a run; of the tally only its public part is used."""
    path = check_output(output, inputs=[tally])
    counted = load_tally(tally, encryption_key=encryption_key)
    terms = AggregationTerms.of(
        counted, request.release, sites, dropouts=request.dropouts, colluding=request.colluding
    )
    with atomic_file(path, mode=0o644) as stream:
        stream.write(terms.to_bytes())
    return terms


def read_terms(path: str) -> AggregationTerms:
    """The terms in a file.

    Raises
    ------
    UsageError
        if there is no such file.
    FileRefused
        if it holds none.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(MOST_TERMS + 1)
    except FileNotFoundError:
        raise UsageError(f"no file {path!r}", remedy="make it with: hushsum federate terms") from None
    except OSError:
        raise UsageError(f"{path!r} cannot be read", remedy="give a file of terms") from None
    try:
        return AggregationTerms.from_bytes(data)
    except FileRefused:
        raise FileRefused(f"{path!r} holds no terms of an aggregation, or damaged ones") from None


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The released function of a run, and which sites it contains."""

    file: str
    terms: AggregationTerms
    survivors: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {"file": self.file, "survivors": list(self.survivors), **terms_as_json(self.terms)}


def run_server(
    terms_file: str,
    party: PartySpec,
    output: str,
    listen: Address,
    *,
    patience: Patience,
    log: Log,
    listening: Callable[[int], None] = lambda _: None,
) -> Aggregated:
    """Carry the messages of a run, open the sum and write it as a released function.

    Raises
    ------
    PeerLost
        if too few sites replied in time.
    """
    terms = read_terms(terms_file)
    identity = Identity.load(party.key, maker=KEYS_COMMAND)
    path = check_output(output, inputs=[terms_file, party.key])
    with _run_folder(party, output, terms) as folder, listener(listen, backlog=len(terms.sites) + 4) as place:
        machine = ServerState(terms, EncryptedState(folder, identity))
        listening(place.getsockname()[1])
        Coordinator(identity, machine, patience=patience, log=log).serve(
            place,
            finish=lambda: released_sum(terms, machine.sum, len(machine.survivors)).save(path),
            closed=lambda step: log(f"step {step!r} is complete"),
        )
    return Aggregated(output, terms, machine.survivors)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRequest:
    """What a site takes part with: the terms it has agreed to, its key, state and ledger."""

    terms: Annotated[str, Parameter(help="The terms that all have agreed to.", group="", metavar="FILE")]
    party: PartySpec
    ledger: LedgerOptions = NO_LEDGER


@dataclass(frozen=True, slots=True)
class SiteEnded:
    """How a run ended for a site."""

    run: str
    claim: Claim
    idempotency_key: str | None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {"run": self.run, "claim": self.claim.in_numbers(), "idempotency_key": self.idempotency_key}


def join_as_site(
    request: SiteRequest,
    tally_file: str,
    server: Address,
    *,
    sites: Sequence[str] | None = None,
    encryption_key: bytes | None = None,
    patience: Patience,
    log: Log,
    approve: Callable[[Claim], None] = lambda _: None,
) -> SiteEnded:
    """Take part in a run with a tally; resumes after a crash with the same state.

    ``sites`` are the fingerprints that this site got from the others by itself; None compares none. Terms
    are written by one party, who could name keys of its own in place of the others': their noise would be
    known to it. The ledger is debited after everything that can be refused was, and before the masked table
    leaves.

    Raises
    ------
    UsageError
        if the tally does not count what the terms say, or the terms name other sites than ``sites``.
    BudgetExhausted
        if the ledger has too little left; nothing is sent then.
    """
    terms = read_terms(request.terms)
    identity = Identity.load(request.party.key, maker=KEYS_COMMAND)
    tally = load_tally(tally_file, encryption_key=encryption_key)
    terms.check_tally(tally)
    if identity.fingerprint not in terms.sites:
        raise UsageError(
            "key",
            "must be the key of a site that the terms name",
            got=f"one with the fingerprint {short(identity.fingerprint)}",
        )
    if sites is not None:
        _check_sites(terms, sites, identity.fingerprint)
    approve(terms.claim)
    spending = _SiteSpending(terms, request.ledger.given(), identity.fingerprint)
    with _run_folder(request.party, tally_file, terms) as folder:
        machine = SiteState(
            identity,
            terms,
            lambda: sums_with_share(tally, terms.basis.shape[0], *terms.shares),
            EncryptedState(folder, identity),
            stage=spending.staged_bytes,
        )
        if machine.steps == 0:
            spending.afford()

        def answered() -> None:
            done = machine.steps
            log(f"answered step {done} of {len(STEPS)}: {STEPS[done - 1]}")

        try:
            Participant(identity, server, machine, patience=patience, log=log).take_part(answered)
        except (PeerLost, PeerRefused) as error:
            raise type(error)(f"{error}. {spending.in_words(sent=machine.sent_table)}") from None
        spending.settle(sent=machine.sent_table)
        machine.forget()
    return SiteEnded(terms.run, terms.claim, spending.key)


def _check_sites(terms: AggregationTerms, known: Sequence[str], own: str) -> None:
    """Refuse terms that name other keys than those that this site knows, its own aside."""
    pinned, named = {fingerprint_of(each) for each in known} - {own}, set(terms.sites) - {own}
    if pinned == named:
        return
    strange, missing = sorted(named - pinned), sorted(pinned - named)
    listed = [f"also {short(each)}" for each in strange] + [f"not {short(each)}" for each in missing]
    raise UsageError(
        "terms",
        "must name the sites whose fingerprints were given, and no others",
        got=", ".join(listed[:4]) + (", …" if len(listed) > 4 else ""),
    )


class _SiteSpending:
    """Debits the site's ledger once per run, under a key that a retry repeats."""

    def __init__(self, terms: AggregationTerms, ledger: LedgerOptions | None, fingerprint: str) -> None:
        self._terms = terms
        self._booking: Booking | None = None
        self._staged: StagedRelease | None = None
        self.key: str | None = None
        if ledger is not None:
            named = f"{terms.digest.hex()} {fingerprint}".encode("ascii")
            self.key = f"federate-{hashlib.sha256(named).hexdigest()[:40]}"
            self._budget = ledger.budget()
            self._booking = Booking(self._budget, self.key)

    def afford(self) -> None:
        """Raise BudgetExhausted if less is left than the claim costs; debits nothing."""
        if self._booking is not None and self._budget.find(self._booking.idempotency_key) is None:
            self._budget.price(self._terms.claim)

    def staged_bytes(self, make: Callable[[], bytes]) -> bytes:
        """Debit the claim, then draw and mask; a retry gets the masked table of the first attempt."""
        try:
            self._staged = stage(self._booking, self._terms.claim, self._subject(), make)
        except AlreadyPublished:
            raise UsageError("this run is closed in the ledger") from None
        return self._staged.payload

    def settle(self, *, sent: bool) -> None:
        """Record that the run has ended; after a crash the masked table was staged by an earlier process.

        A site whose table was not ``sent``, and whose ledger does not hold this run, owes nothing.
        """
        if self._booking is None:
            return
        if not sent and self._budget.find(self._booking.idempotency_key) is None:
            return
        with suppress(AlreadyPublished):
            staged = self._staged or stage(self._booking, self._terms.claim, self._subject(), _nothing)
            staged.publish()

    def in_words(self, *, sent: bool) -> str:
        """What a site that was dropped, or lost the server, has spent."""
        claim = self._terms.claim
        amount = f"ρ = {claim.rho:.15g}" if claim.epsilon is None else f"ε = {claim.epsilon:.15g}"
        if self._booking is not None and self._budget.find(self._booking.idempotency_key) is not None:
            spent = f"This site's ledger was debited {amount} for this run (entry {self.key})"
        elif sent:
            spent = f"This site's masked table may have left and {amount} counts as spent"
        else:
            return "Nothing was spent at this site."
        return f"{spent}; that stays spent, and repeating the command spends nothing more."

    def _subject(self) -> dict[str, object]:
        terms = self._terms
        return {
            "kind": "secure aggregation",
            "run": terms.run,
            "fingerprint": terms.basis.fingerprint,
            "rows": terms.basis.shape[0],
        }


def _nothing() -> bytes:
    raise UsageError("the ledger holds no masked table of this run")


def _run_folder(party: PartySpec, file: str, terms: AggregationTerms) -> StateFolder:
    """The folder of one run among those of a party, named by what all have agreed to.

    The same terms find the run again, unfinished or ended; other terms begin with new keys.

    Privacy
    -------
    A key pair masks one table and a sum is opened once, because the mark that a run has ended is never
    removed for the sake of another run.
    """
    return StateFolder(Path(party.state or f"{file}.federate") / terms.digest.hex()[:32])
