"""Calculations that requests wait for, in processes that can be limited, and ended at any time."""
