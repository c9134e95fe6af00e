"""The routes, one module per subject."""

from . import accounts, datasets, functions, releases, shared_links, system

# In the order in which paths are matched and described.
ROUTERS = (
    functions.router,
    shared_links.by_link_router,
    system.router,
    system.page_router,
    accounts.router,
    accounts.sign_in_router,
    datasets.router,
    datasets.samples_router,
    releases.router,
    releases.streams_router,
    releases.models_router,
    shared_links.router,
)
