"""Imported by the server that `tests.forked` forks from: everything that commands and services import."""

from __future__ import annotations

import gc
import importlib
import pkgutil

import hushsum

LATER = (
    "alembic.command",
    "cryptography.hazmat.primitives.ciphers.aead",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "rich.progress",
    "rich.table",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats",
    "sklearn.base",
    "sqlalchemy.orm",
    "typer.rich_utils",
)
"""What commands import when they need it."""

SERVICE = ("psycopg", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite", "uvicorn.logging")

for module in pkgutil.walk_packages(hushsum.__path__, "hushsum."):
    if not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
for name in (*LATER, *SERVICE):
    importlib.import_module(name)
# What is never collected is not touched by a collector, and so not copied in every fork.
gc.collect()
gc.freeze()
