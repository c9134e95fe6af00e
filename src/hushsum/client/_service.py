"""What somebody with a token may do in a service."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeVar

from hushsum.client._connection import Connection
from hushsum.client._dataset import RemoteDataset
from hushsum.client._functions import RemoteFunction, RemoteModel
from hushsum.errors import UsageError

R = TypeVar("R", RemoteFunction, RemoteModel, RemoteDataset)


class Service:
    """A service as the owner of a token sees it. Made by :func:`hushsum.connect`.

    The service decides what a token may do: an analyst queries functions that were granted, an owner has
    datasets besides, an administrator lets people in and sees neither. Every call is one request or a few; it
    raises what the service reports, as the same errors that the library raises.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.me: dict[str, Any] = connection.json("GET", "/me")
        """Who the token belongs to, and what it is good for."""

    def __repr__(self) -> str:
        return f"<Service {self._connection.url} as {self.me['name']!r}, {self.me['role']}>"

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def functions(self) -> list[RemoteFunction]:
        """The functions that this token may query, oldest first; models are listed by :meth:`models`."""
        return [
            RemoteFunction(self._connection, each) for each in self._listed() if "model" not in each["facts"]
        ]

    def function(self, name: str) -> RemoteFunction:
        """The function with this id, or the newest with this name.

        Raises
        ------
        UsageError
            if there is none that this token may query.
        """
        return _named(name, self.functions(), "function")[-1]

    def models(self) -> list[RemoteModel]:
        """The models that this token may query, oldest first."""
        return [RemoteModel(self._connection, each) for each in self._listed() if "model" in each["facts"]]

    def _listed(self) -> list[dict[str, Any]]:
        return self._connection.objects("GET", "/functions")

    def model(self, name: str) -> RemoteModel:
        """The model with this id, or the newest with this name.

        Raises
        ------
        UsageError
            if there is none that this token may query.
        """
        return _named(name, self.models(), "model")[-1]

    def model_kinds(self) -> list[dict[str, Any]]:
        """The models that can be fitted in this service, and the settings of each."""
        return self._connection.objects("GET", "/models")

    def datasets(self) -> list[RemoteDataset]:
        """The owner's datasets, oldest first."""
        return [RemoteDataset(self._connection, each) for each in self._connection.json("GET", "/datasets")]

    def dataset(self, name: str) -> RemoteDataset:
        """The owner's dataset with this id or name."""
        return _named(name, self.datasets(), "dataset")[0]

    def create_dataset(self, name: str, **terms: Any) -> RemoteDataset:
        """A dataset and its budget; ``terms`` are those of ``DatasetTerms.of``, such as ``epsilon=2.0``."""
        return RemoteDataset(
            self._connection, self._connection.json("POST", "/datasets", json={"name": name, **terms})
        )

    def revoke_share(self, share: str) -> None:
        """Revoke a link at once: one of this owner's or, as an administrator, any; by its id."""
        self._connection.request("DELETE", f"/shares/{share}")

    def create_sample(self) -> dict[str, Any]:
        """A dataset of made-up records with its upload, and what its owner would declare of them."""
        return self._connection.object("POST", "/datasets/samples")

    def usage(self) -> dict[str, Any]:
        """What this account uses of its quotas: bytes, cells of tallies, jobs and tokens."""
        return self._connection.object("GET", "/usage")

    def sign_out(self) -> None:
        """Revoke the token in use and those that it made, and close the connections."""
        self._connection.request("DELETE", f"/tokens/{self.me['token']}")
        self.close()

    def cancel(self, job: str) -> dict[str, Any]:
        """Cancel long work before it has spent anything.

        Raises
        ------
        ServiceRefused
            if it has finished, or is being paid for.
        """
        return self._connection.object("DELETE", f"/jobs/{job}")

    def accept_restore(self, reason: str) -> int:
        """Accept, as an administrator, a ledger that may be a restored backup; returns how many datasets
        were frozen. The owner of each opens it with :meth:`RemoteDataset.write_off`.
        """
        return int(self._connection.json("POST", "/ledger/restores", json={"reason": reason})["frozen"])

    def create_account(self, name: str, role: str, **terms: Any) -> str:
        """Create an account as an administrator, and a token for it, which is returned only here."""
        account = self._connection.json("POST", "/accounts", json={"name": name, "role": role})
        made = self._connection.json("POST", f"/accounts/{account['id']}/tokens", json=terms)
        return str(made["secret"])

    def link(self, name: str, subject: str) -> None:
        """Let a person at the sign-in provider sign in to the account of this name, as an administrator.

        ``subject`` is that person's identity at the provider: a verified email address, unless the service
        uses another claim.
        """
        found = [each["id"] for each in self._connection.json("GET", "/accounts") if each["name"] == name]
        if not found:
            raise UsageError("name", "must be that of an account", remedy="create it first")
        self._connection.json("POST", f"/accounts/{found[0]}/identity", json={"subject": subject})


def _named(name: str, listed: Sequence[R], kind: str) -> list[R]:
    """Those with an id or a name, oldest first; at least one."""
    found = [each for each in listed if name in (each.id, each.name)]
    if not found:
        raise UsageError(
            kind, "must be one that this token may use", remedy="see functions(), models() and datasets()"
        )
    return found
