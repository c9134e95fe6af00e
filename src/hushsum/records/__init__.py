"""Input: arrays, frames, Arrow data and files become dense float32 rows, integer codes, or sets of integers.

Every adapter obeys three rules. What a record becomes depends on that record alone, bit for bit: every number
goes through float64, elementwise, whatever its container, its dtype or its batch. Data are refused
before anything has changed. A message may name a column, which is public, but never a value or the number of
records that are at fault.
"""

from __future__ import annotations

from ._arrow import *
from ._arrow_stream import *
from ._bounds import *
from ._cell_format import *
from ._data_derived_parameters import *
from ._declared_columns import *
from ._decoder_worker import *
from ._files import *
from ._graph import *
from ._persons import *
from ._transform import *
