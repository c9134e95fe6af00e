"""The client of a service: :func:`connect`, and remote functions with the interface of local ones."""

from ._functions import RemoteFunction, RemoteModel, open_link
from ._service import RemoteDataset, RemoteStream, Service, connect

__all__ = [
    "RemoteDataset", "RemoteFunction", "RemoteModel", "RemoteStream", "Service", "connect", "open_link",
]  # fmt: skip
