"""The client of a service: :func:`connect`, and remote functions with the interface of local ones."""

from ._client import RemoteDataset, RemoteFunction, RemoteModel, RemoteStream, Service, connect, open_link

__all__ = [
    "RemoteDataset", "RemoteFunction", "RemoteModel", "RemoteStream", "Service", "connect", "open_link",
]  # fmt: skip
