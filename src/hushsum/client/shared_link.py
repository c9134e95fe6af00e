"""A function behind a shared link: no account, one function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushsum.client.connect import open_client
from hushsum.errors import UsageError

if TYPE_CHECKING:
    from hushsum.client.remote_function import RemoteFunction
    from hushsum.client.remote_model import RemoteModel

_PREFIX = "/shared/"
_AT_A_TIME = 5_000
"""Points per request; a service accepts 10,000 by default."""


def open_link(url: str, *, timeout: float = 60.0) -> RemoteFunction | RemoteModel:
    """The function or the model behind a shared link, for whoever has the link.

    Parameters
    ----------
    url : str
        The link, as its owner sent it: ``https://sums.example.org/shared/…``. Who has it may query the
        function until the owner revokes it, so treat it as you would a password.
    timeout : float
        Seconds to wait for an answer.

    Raises
    ------
    UsageError
        if it is no such link, or ``hushsum[service]`` is not installed.
    ServiceRefused
        if the service cannot be reached, or the link was revoked or has expired.
    """
    root, found, key = url.partition(_PREFIX)
    key = key.removesuffix("/embed").rstrip("/")
    if not found or not key or not key.replace("-", "").replace("_", "").isalnum() or not key.isascii():
        raise UsageError(
            parameter="url",
            rule="must be a shared link such as https://sums.example.org/shared/…",
            remedy="copy it whole",
        )
    from hushsum.client.http_client import Connection
    from hushsum.client.query_function import FunctionAddress
    from hushsum.client.remote_function import RemoteFunction
    from hushsum.client.remote_model import RemoteModel

    client, address = open_client(root, timeout=timeout, token=None, allow_plain_http=False)
    connection = Connection(client, address)
    path = f"{_PREFIX}{key}"
    response = {"id": "", **connection.object("GET", f"{path}/function")}
    where = FunctionAddress(path, _AT_A_TIME)
    if "model" in response["facts"]:
        return RemoteModel(connection, response, where)
    return RemoteFunction(connection, response, where)
