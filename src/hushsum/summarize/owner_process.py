"""An owner's process: it listens, lets one curator in, and answers what the rule allows."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from hushsum._types import Floats
from hushsum.errors import (
    Argument,
    BudgetExhausted,
    DataRefused,
    FileRefused,
    HushsumError,
    Parameter,
    PeerLost,
    PeerRefused,
    UsageError,
)
from hushsum.summarize import transport_messages
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.hash_secret import HashSecret
from hushsum.summarize.messages import Broadcast, RunTerms
from hushsum.summarize.owner import OwnerState
from hushsum.transport import control_messages
from hushsum.transport.addresses import Log, Patience
from hushsum.transport.peer_identity import Identity
from hushsum.transport.state_folder import StateFolder
from hushsum.transport.tls_connection import TlsConnection, accept

_HANDSHAKE = 20.0
_CONTINUED = (PeerRefused, FileRefused, UsageError, DataRefused, BudgetExhausted)
"""After these errors the owner waits for another connection, perhaps on other terms."""


class Offer(Protocol):
    """The records of an owner, of which columns are requested by name."""

    def choose(self, names: Sequence[str]) -> Floats:
        """These columns side by side, shape (records, width); UsageError for one that is not offered."""


class OwnerProcess:
    """One owner in one run.

    What is answered is decided by `OwnerState`, which stores where it stands before an answer leaves. A
    cap of the owner's own must be in the terms, whose noise covers it, and holds whatever is requested. The
    terms are only looked at until the first broadcast comes. Then they are paid for and the state folder is
    bound to them, before anything is answered: from there on another run is refused, so a curator cannot
    start over to get round the cap. ``pay`` is called again after a crash; it must not spend twice for one
    run. ``afford`` raises if it would refuse. ``settle`` is called when the run has ended. With a ``secret``
    hashes are sent instead of points, and terms that ask for points are refused.

    Refusals are logged here and sent to the curator, in sentences without a data value.
    """

    def __init__(
        self,
        identity: Identity,
        peers: Sequence[str],
        offer: Offer,
        state_folder: StateFolder,
        *,
        cap: int | None = None,
        secret: HashSecret | None = None,
        afford: Callable[[RunTerms], None] = lambda _: None,
        pay: Callable[[RunTerms], None] = lambda _: None,
        settle: Callable[[], None] = lambda: None,
        patience: Patience | None = None,
        log: Log = lambda _: None,
    ) -> None:
        if state_folder.get("ended") is not None:
            raise UsageError(
                parameter="state",
                rule="holds a run that has ended",
                remedy="give another, or remove it, for a new run",
            )
        self._identity = identity
        self._context = identity.server_context(peers)
        self._offer = offer
        self._state_folder = state_folder
        self._cap = cap
        self._secret = secret
        self._afford = afford
        self._pay = pay
        self._settle = settle
        self._patience = patience or Patience()
        self._log = log
        self._state: OwnerState | None = None
        self._opening = b""
        self._bound = False
        self._ended = False

    @property
    def state(self) -> OwnerState:
        """How far the run has come."""
        if self._state is None:
            raise UsageError(rule="no run has begun")
        return self._state

    def serve(self, listener: socket.socket) -> OwnerState:
        """Take part until the curator ends the run.

        Raises
        ------
        PeerLost
            if no curator came for the time of ``patience.wait``; the run can be resumed.
        """
        deadline = time.monotonic() + self._patience.wait
        while not self._ended:
            try:
                connection = accept(
                    listener,
                    self._context,
                    wait=max(deadline - time.monotonic(), 0.01),
                    handshake=_HANDSHAKE,
                    transfer=self._patience.transfer,
                )
            except TimeoutError:
                raise PeerLost(
                    rule=f"no curator came within {self._patience.wait:g} seconds",
                    remedy="start again to go on",
                ) from None
            except PeerRefused as refused:
                self._log(f"refused: {refused}")
                continue
            with connection:
                self._converse(connection)
            deadline = time.monotonic() + self._patience.wait
        return self.state

    def _converse(self, connection: TlsConnection) -> None:
        """One connection, from its opening to its end; whatever goes wrong ends it, and changes nothing."""
        try:
            self._open(connection)
            while not self._ended:
                self._reply(connection)
        except PeerLost:
            self._log("the curator went away; waiting for it to come back")
        except _CONTINUED as refused:
            self._log(f"refused: {refused}")
            with suppress(PeerLost):
                connection.send(control_messages.refusal(_reason(refused)))
        except control_messages.OwnRefusal as own:
            self._log(f"refused: {own.error}")
            with suppress(PeerLost):
                connection.send(control_messages.refusal(_own_reason(own.error)))
            if not isinstance(own.error, _CONTINUED):
                raise own.error from None

    def _open(self, connection: TlsConnection) -> None:
        data = connection.receive(most=transport_messages.MOST_OPENING, wait=self._patience.wait)
        opening = transport_messages.Opening.from_bytes(data)
        bound = self._state_folder.get("opening")
        if bound is not None and bound != data:
            raise PeerRefused(rule="this owner takes part in another run, or in this one on other terms")
        if self._state is None or self._opening != data:
            self._state, self._opening = self._begin(opening), data
        connection.send(control_messages.ready(opening.terms.run))

    def _begin(self, opening: transport_messages.Opening) -> OwnerState:
        """The state for terms that are acceptable; nothing is bound or paid yet."""
        terms = opening.terms
        if self._identity.fingerprint not in terms.owners:
            raise PeerRefused(rule="the terms do not name this owner's fingerprint")
        if terms.rho is None:
            raise PeerRefused(rule=f"the rule {terms.rule} keeps no promise to this owner's records")
        if self._cap is not None and (terms.cap is None or terms.cap > self._cap):
            # A cap lets one record displace another, so the noise must have been made for it.
            raise PeerRefused(
                rule=(
                    "this owner limits the points that it sends, and the terms must contain the limit: ",
                    Argument("cap", self._cap),
                )
            )
        features = self._features(opening)
        points = self._offer.choose(opening.compared)
        extra = self._offer.choose(opening.carried) if opening.carried else None
        if points.shape[1] != terms.features.dim:
            raise PeerRefused(rule="the columns of the terms have another width here")
        state = OwnerState(
            self._identity.fingerprint,
            points,
            terms,
            extra=extra,
            cap=self._cap,
            features=features,
            store=lambda saved: self._state_folder.put("state", saved),
        )
        with control_messages.own_affairs():
            kept = self._state_folder.get("state")
            if kept is not None:
                state.restore(kept)
            self._afford(terms)
        return state

    def _features(self, opening: transport_messages.Opening) -> SummaryFeatures | None:
        """The features under the owners' secret; an owner that has one sends hashes or nothing."""
        if not opening.terms.hashed:
            if self._secret is not None:
                raise PeerRefused(
                    rule=(
                        "this owner sends hashes only, and the terms request points: ",
                        Parameter("hashes"),
                    )
                )
            return None
        if self._secret is None:
            raise PeerRefused(
                rule="the terms ask for hashes, and this owner was given no secret to make them"
            )
        if opening.check != self._secret.check:
            raise PeerRefused(rule="the validation set was hashed under another secret than this owner's")
        return self._secret.features(opening.terms.features)

    def _bind(self) -> None:
        """Pay for the run, then bind the state folder to it: a run that cannot be paid binds nothing."""
        if not self._bound:
            with control_messages.own_affairs():
                self._pay(self.state.terms)
            self._state_folder.keep("opening", self._opening)
            self._bound = True
            self._log("resumed the run" if self.state.step else "joined the run")

    def _reply(self, connection: TlsConnection) -> None:
        data = connection.receive(most=transport_messages.MOST_BROADCAST, wait=self._patience.wait)
        kind, values = control_messages.kind_of(data, "broadcast", "ending")
        if kind == "broadcast":
            self._bind()
            connection.send(self.state.answer(Broadcast.from_bytes(data)).to_bytes())
            return
        if values.get("run") != self.state.terms.run:
            raise PeerRefused(rule="the message ends another run")
        with control_messages.own_affairs():
            self._settle()
        self._state_folder.put("ended", data)
        self._ended = True
        with suppress(PeerLost):
            connection.send(control_messages.ready(self.state.terms.run))


def _reason(refused: Exception) -> str:
    """The reason that is sent to the curator: broken rules in words, other failures without detail."""
    if isinstance(refused, PeerRefused | FileRefused):
        return str(refused)
    return "this owner does not offer what the terms ask for"


def _own_reason(error: HushsumError) -> str:
    if isinstance(error, BudgetExhausted):
        return "this owner's budget does not suffice for the terms"
    return "this owner's ledger or state does not allow this run"
