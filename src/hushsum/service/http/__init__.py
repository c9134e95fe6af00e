"""The HTTP interface: the application, its routes, authentication, limits, and the description in OpenAPI."""

from .app import create_app, describe
from .authentication import SCOPES
from .compute_pool import LONGEST_QUEUE_SECONDS, ComputePool, CostEstimates
from .connection_limits import LONGEST_HEAD, GuardedConnections, available_connections
from .context import Context
from .middleware import PUBLIC, QUERY, SIGN_IN, QueryFastPath, is_public, queried_function
from .problem_responses import Refusal
from .request_limits import RateLimit, address_group
from .routes import ROUTERS
from .routes.datasets import SAMPLE_NAME, sample_records
from .routes.system import READER, assets

__all__ = [
    "LONGEST_HEAD", "LONGEST_QUEUE_SECONDS", "PUBLIC", "QUERY", "READER", "ROUTERS", "SAMPLE_NAME", "SCOPES",
    "SIGN_IN", "ComputePool", "Context", "CostEstimates", "GuardedConnections", "QueryFastPath", "RateLimit",
    "Refusal", "address_group", "assets", "available_connections", "create_app", "describe", "is_public",
    "queried_function", "sample_records",
]  # fmt: skip
