"""Engines: one tally counted by `processes`, `dask`, `spark` or `duckdb`, each record exactly once.

Each is a module of its own, which imports what it needs.
"""
