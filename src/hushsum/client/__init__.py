"""A service's functions from afar: :func:`connect`, and functions that answer as local ones do."""

from hushsum.client.connect import connect
from hushsum.client.remote_function import RemoteFunction
from hushsum.client.remote_model import RemoteModel
from hushsum.client.service import RemoteDataset, Service

__all__ = ["RemoteDataset", "RemoteFunction", "RemoteModel", "Service", "connect"]
