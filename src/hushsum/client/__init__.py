"""The client of a service: :func:`connect`, and remote functions with the interface of local ones."""

from hushsum.client.connect import connect
from hushsum.client.dataset import RemoteDataset
from hushsum.client.remote_function import RemoteFunction
from hushsum.client.remote_model import RemoteModel
from hushsum.client.remote_stream import RemoteStream
from hushsum.client.service import Service
from hushsum.client.shared_link import open_link

__all__ = [
    "RemoteDataset",
    "RemoteFunction",
    "RemoteModel",
    "RemoteStream",
    "Service",
    "connect",
    "open_link",
]
