"""Input: arrays, frames, Arrow data and files become dense float32 rows, integer codes, or sets of integers.

Every adapter obeys three rules. What a record becomes depends on that record alone, bit for bit: every number
goes through float64, elementwise, whatever its container, its dtype or its batch. Data are refused
before anything has changed. A message may name a column, which is public, but never a value or the number of
records that are at fault.
"""

from __future__ import annotations

from hushsum.records.bounds import Bounds
from hushsum.records.category_codes import as_codes
from hushsum.records.cell_format import CellFormat
from hushsum.records.native_batch import as_dense
from hushsum.records.person_caps import PendingUnits, UnitCap
from hushsum.records.record_batches import RecordStream, open_batches
from hushsum.records.sets import Sets, as_sets

__all__ = [
    "Bounds",
    "CellFormat",
    "PendingUnits",
    "RecordStream",
    "Sets",
    "UnitCap",
    "as_codes",
    "as_dense",
    "as_sets",
    "open_batches",
]
