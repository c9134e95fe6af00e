"""A site's process in a secure aggregation: it connects to the server and answers until the run has ended."""

from __future__ import annotations

import time

from hushsum.errors import FileRefused, PeerLost, PeerRefused
from hushsum.federated.secure_aggregation import messages
from hushsum.federated.secure_aggregation.site import SiteState
from hushsum.transport import control_messages
from hushsum.transport.addresses import Address, Log, Patience
from hushsum.transport.peer_identity import Identity
from hushsum.transport.serialization import unpack
from hushsum.transport.tls_connection import TlsConnection, connect

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
_CONNECT = 20.0
_REQUESTS = ("aggregation terms", "roster", "deliveries", "survivors", "consents")
_KINDS = (*_REQUESTS, "ending", "refusal", "giving up")


class SiteProcess:
    """One site of one run. What is answered is decided by `SiteState`, which keeps each reply before it
    leaves.

    The site tries to connect for ``patience.wait`` seconds after its start. After a lost connection it
    connects again for ``patience.lost`` seconds, also to a server that gave up and may be started again, and
    the server repeats its request.
    """

    def __init__(
        self,
        identity: Identity,
        address: Address,
        server: str,
        state: SiteState,
        *,
        patience: Patience | None = None,
        log: Log = lambda _: None,
    ) -> None:
        self._identity = identity
        self._address = address
        self._server = server
        self._state = state
        self._patience = patience or Patience()
        self._log = log
        self._gave_up: PeerLost | None = None

    def run(self) -> None:
        """Take part until the server has opened the sum.

        Raises
        ------
        PeerLost
            if the server cannot be reached for so long, with its reason if it gave up; the run can be
            resumed.
        PeerRefused
            if one side refused what the other sent, or the run ended without this site's table.
        HushsumError
            of the site's own ledger; the server learns only that the site cannot take part.
        """
        deadline, pause = time.monotonic() + max(self._patience.wait, self._patience.lost), _FIRST_PAUSE
        logged = ""
        while True:
            reached: float | None = None
            try:
                with self._connected() as connection:
                    reached, self._gave_up = time.monotonic(), None
                    self._converse(connection)
                    return
            except PeerLost as lost:
                now = time.monotonic()
                if reached is not None:
                    # The server was there until now, for however long it had nothing to ask.
                    deadline = now + self._patience.lost
                    if now - reached > _LONGEST_PAUSE:
                        pause = _FIRST_PAUSE
                if now + pause > deadline:
                    raise self._gave_up or lost from None
                if str(lost) != logged:
                    logged = str(lost)
                    self._log(f"{lost}; trying again for up to {deadline - now:.0f} seconds")
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _connected(self) -> TlsConnection:
        return connect(
            self._identity,
            self._address.host,
            self._address.port,
            self._server,
            timeout=min(_CONNECT, self._patience.wait),
            transfer=self._patience.transfer,
        )

    def _converse(self, connection: TlsConnection) -> None:
        """Answer what comes until the run has ended."""
        while True:
            data = connection.receive(most=messages.most_request(self._state.terms), wait=self._patience.wait)
            kind, values, _ = unpack(data, *_KINDS)
            if kind == "refusal":
                raise PeerRefused(rule=f"the server refused: {control_messages.reason_in(values)}")
            if kind == "giving up":
                self._gave_up = PeerLost(
                    rule=f"the server gave up: {control_messages.reason_in(values)}",
                    remedy="repeat this command when the server is started again",
                )
                raise self._gave_up
            if kind == "ending":
                if not self._state.sent_table:
                    refused = PeerRefused(
                        rule="the run ended without this site's table",
                        remedy="agree on the terms of a new run",
                    )
                    connection.send(control_messages.refusal(str(refused)))
                    raise refused
                connection.send(control_messages.ready(self._state.terms.run))
                return
            try:
                reply = self._state.answer(data)
            except (PeerRefused, FileRefused) as refused:
                self._log(f"refused: {refused}")
                connection.send(control_messages.refusal(str(refused)))
                raise
            except control_messages.OwnRefusal as own:
                connection.send(control_messages.refusal("the site's ledger does not allow this run"))
                raise own.error from None
            connection.send(reply)
            self._log(f"answered step {self._state.steps} of {len(messages.STEPS)}: {_word(kind)}")


def _word(kind: str) -> str:
    return dict(zip(_REQUESTS, messages.STEPS, strict=True))[kind]
