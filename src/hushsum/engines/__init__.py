"""Engines: one tally counted by processes, Dask, Spark or DuckDB, each record exactly once."""
