"""The server's process in a secure aggregation: it listens, carries messages, and ends steps by a clock."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hushsum.errors import FileRefused, HushsumError, PeerLost, PeerRefused
from hushsum.federated.secure_aggregation import messages
from hushsum.federated.secure_aggregation.server import DONE, ServerState
from hushsum.transport import control_messages
from hushsum.transport.addresses import Log, Patience, short
from hushsum.transport.peer_identity import Identity
from hushsum.transport.serialization import unpack
from hushsum.transport.tls_connection import TlsConnection, incoming, secured

_HANDSHAKE = 20.0
_TICK = 0.05
_MOST_HANDSHAKES = 64
"""Connections under way that have not proven a key; further ones are closed at once."""


_MOST_OF_A_SITE = 8
"""Connections of one key at once: a site needs one, and a few more while lost ones time out."""


class ServerProcess:
    """All sites of one run.

    A step ends when every site that takes part has replied, or when those that have not are away for
    ``patience.lost`` seconds, or have not come to this process at all for ``patience.wait``, and at least
    ``terms.least`` have replied. A site that comes back before continues where it was; one that is connected
    and silent for ``patience.wait`` seconds counts as away. However often it connects again, nobody is
    awaited for longer than that and the time of one transfer after a step was opened. Refusals are logged and
    sent to the site, in sentences without a data value; so is the reason when the server gives up.
    """

    def __init__(
        self,
        identity: Identity,
        state: ServerState,
        *,
        patience: Patience | None = None,
        log: Log = lambda _: None,
    ) -> None:
        self._context = identity.server_context(state.terms.sites)
        self._state = state
        self._patience = patience or Patience()
        self._log = log
        self._changed = threading.Condition()
        self._stopped = False
        self._last_message: bytes | None = None
        self._told: set[str] = set()
        self._connections: Counter[str] = Counter()
        self._left: dict[str, float] = {}
        self._handshakes = threading.BoundedSemaphore(_MOST_HANDSHAKES)
        self._begun = self._step_begun = time.monotonic()

    def serve(self, listener: socket.socket) -> ServerState:
        """Take part until the sum is open and the sites know.

        Raises
        ------
        PeerLost
            if too few sites replied in time; the run can be resumed with the same state.
        PeerRefused
            if a site dealt shares that do not give its secret: the sum cannot be opened.
        """
        doors = threading.Thread(target=self._admit, args=(listener,), daemon=True)
        doors.start()
        try:
            while self._state.step != DONE:
                self._finish_step()
            self._farewell()
        except PeerLost as lost:
            self._give_up(control_messages.giving_up(str(lost.rule)))
            raise
        except PeerRefused as refused:
            self._give_up(control_messages.refusal(str(refused)))
            raise
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
            doors.join(_HANDSHAKE)
        return self._state

    def _finish_step(self) -> None:
        step = self._state.step
        with self._changed:
            self._step_begun = time.monotonic()
            while any(self._expected(site) for site in self._state.awaited):
                self._changed.wait(_TICK)
            missing = self._state.awaited
            for site in missing:
                self._log(f"step {step!r}: continuing without site {short(site)}")
            try:
                self._state.close_step()
            except PeerRefused as refused:
                if len(self._state.members) - len(missing) >= self._state.terms.least:
                    raise
                raise PeerLost(
                    rule=f"{refused}", remedy="start this command again, and the sites, to continue the run"
                ) from None
            self._changed.notify_all()
        self._log(f"step {step!r} is complete")

    def _expected(self, site: str) -> bool:
        """Whether a site is connected, or left so short a time ago that it may come back.

        Sites are started by people, one after the other, so those that have not come yet to this process
        have more time, also after it was started again; once they are here they reply at once.
        """
        if time.monotonic() - self._step_begun > self._patience.wait + self._patience.transfer:
            return False
        if self._connections[site]:
            return True
        if site in self._left:
            return time.monotonic() - self._left[site] < self._patience.lost
        return time.monotonic() - self._begun < self._patience.wait

    def _farewell(self) -> None:
        """Give the sites that are still there the time of one transfer to hear that the run has ended."""
        deadline = time.monotonic() + min(self._patience.transfer, self._patience.lost)
        awaited = set(self._state.survivors)
        with self._changed:
            self._changed.notify_all()
            while time.monotonic() < deadline and any(self._expected(site) for site in awaited - self._told):
                self._changed.wait(_TICK)

    def _give_up(self, message: bytes) -> None:
        """Send the sites that wait for a request this instead, within the time of one transfer."""
        deadline = time.monotonic() + min(self._patience.transfer, self._patience.lost)
        with self._changed:
            self._last_message, self._stopped = message, True
            self._changed.notify_all()
            awaited = set(self._state.awaited)
            while time.monotonic() < deadline and any(
                count for site, count in self._connections.items() if site not in awaited
            ):
                self._changed.wait(_TICK)

    def _admit(self, listener: socket.socket) -> None:
        while not self._stopped:
            try:
                plain = incoming(listener, wait=_TICK)
            except TimeoutError:
                continue
            except OSError:
                return
            # In threads, so that who connects and says nothing holds up nobody else.
            if self._handshakes.acquire(blocking=False):
                threading.Thread(target=self._receive, args=(plain,), daemon=True).start()
            else:
                plain.close()

    def _receive(self, plain: socket.socket) -> None:
        try:
            connection = secured(plain, self._context, handshake=_HANDSHAKE, transfer=self._patience.transfer)
        except PeerRefused as refused:
            self._log(f"refused: {refused}")
            return
        finally:
            self._handshakes.release()
        self._converse(connection)

    def _converse(self, connection: TlsConnection) -> None:
        site = connection.peer
        with connection:
            try:
                with self._counted(site):
                    while self._exchange(connection, site):
                        pass
            except PeerLost:
                self._log(f"site {short(site)} went away")
            except HushsumError as refused:
                self._log(f"refused site {short(site)}: {refused}")
                with suppress(PeerLost):
                    connection.send(control_messages.refusal(str(refused)))

    @contextmanager
    def _counted(self, site: str) -> Iterator[None]:
        with self._changed:
            if self._connections[site] >= _MOST_OF_A_SITE:
                raise PeerRefused(
                    rule=f"this site has {_MOST_OF_A_SITE} connections open", remedy="end the others first"
                )
            self._connections[site] += 1
        try:
            yield
        finally:
            with self._changed:
                self._connections[site] -= 1
                self._left[site] = time.monotonic()
                self._changed.notify_all()

    def _exchange(self, connection: TlsConnection, site: str) -> bool:
        """One request and its reply; false when nothing follows."""
        with self._changed:
            request = self._due(site)
            step = self._state.step
        if request is None:
            if self._last_message is not None:
                connection.send(self._last_message)
            return False
        if step == DONE:
            connection.send(control_messages.ending(self._state.terms.run))
            with suppress(PeerLost):
                connection.receive(most=control_messages.MOST_CONTROL, wait=self._patience.transfer)
            with self._changed:
                self._told.add(site)
                self._changed.notify_all()
            return False
        connection.send(request)
        most = messages.most_reply(self._state.terms, step) + control_messages.MOST_CONTROL
        data = connection.receive(most=most, wait=self._patience.wait)
        self._check_refusal(data)
        with self._changed:
            if self._state.step != step:
                raise PeerRefused(rule=f"the reply to step {step!r} came too late")
            self._state.take(site, data)
            self._changed.notify_all()
        return True

    def _due(self, site: str) -> bytes | None:
        """What a site is to be sent, once there is something; None when the process stops."""
        while not self._stopped:
            if self._state.step == DONE:
                if site not in self._state.survivors:
                    raise PeerRefused(rule="the run is over, and this site's table is not in its sum")
                return b""
            request = self._state.request_for(site)
            if request is not None:
                return request
            if site not in self._state.members:
                raise PeerRefused(rule="this site is not, or no longer, part of the run")
            self._changed.wait(1.0)
        return None

    def _check_refusal(self, data: bytes) -> None:
        if len(data) > control_messages.MOST_CONTROL:
            return
        with suppress(FileRefused):
            _, values, _ = unpack(data, "refusal")
            raise PeerRefused(rule=f"it refused: {control_messages.reason_in(values)}")
