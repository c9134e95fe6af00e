"""The HTTP interface: the application, its routes, authentication, limits, and the description in OpenAPI."""

from hushsum.service.http.app import create_app, describe
from hushsum.service.http.authentication import SCOPES
from hushsum.service.http.compute_pool import LONGEST_QUEUE_SECONDS, ComputePool, CostEstimates
from hushsum.service.http.connection_limits import LONGEST_HEAD, GuardedConnections, available_connections
from hushsum.service.http.context import Context
from hushsum.service.http.middleware import PUBLIC, QUERY, SIGN_IN, QueryFastPath, is_public, queried_function
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import RateLimit, address_group
from hushsum.service.http.routes import ROUTERS
from hushsum.service.http.routes.datasets import SAMPLE_NAME, sample_records
from hushsum.service.http.routes.system import READER, assets

__all__ = [
    "LONGEST_HEAD", "LONGEST_QUEUE_SECONDS", "PUBLIC", "QUERY", "READER", "ROUTERS", "SAMPLE_NAME", "SCOPES",
    "SIGN_IN", "ComputePool", "Context", "CostEstimates", "GuardedConnections", "QueryFastPath", "RateLimit",
    "Refusal", "address_group", "assets", "available_connections", "create_app", "describe", "is_public",
    "queried_function", "sample_records",
]  # fmt: skip
