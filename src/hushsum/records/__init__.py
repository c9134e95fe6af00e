"""Input: arrays, frames, Arrow data and files become dense float32 rows, integer codes, or sets of integers.

Every adapter obeys three rules. What a record becomes depends on that record alone, bit for bit: every number
goes through float64, elementwise, whatever its container, its dtype or its batch. Data are refused
before anything has changed. A message may name a column, which is public, but never a value or the number of
records that are at fault.
"""

from __future__ import annotations

from ._arrow import (
    DAYS,
    ENCODE,
    Batch,
    Sets,
    as_codes,
    as_columns,
    as_dense,
    as_sets,
    as_table,
    choose_columns,
    choose_mixed,
    column_groups,
    column_names_of,
    columns_in_words,
    columns_of,
    dense_batch,
    distances,
    first_column,
    from_package,
    has_arrow_interface,
    in_memory,
    is_frame,
    is_not_numeric,
    mixed_columns,
    numbers_of,
    numbers_with_missing,
    part_of,
    pyarrow,
    quietly,
    refuse_path,
)
from ._arrow_stream import read_stream
from ._bounds import (
    FEWEST_BITS,
    MOST_BITS,
    MOST_CELLS,
    Bounds,
    CellGrid,
    Codes,
    DeclaredBounds,
    DeclaredSteps,
    Steps,
    UnitBall,
    bins_for_bandwidth,
    bounds_in_words,
    clipped_to_ball,
    declared_bounds,
    declared_steps,
    names_in_words,
    norms,
    steps_between,
    whole_length,
    whole_vectors,
)
from ._cell_format import (
    ENCODINGS,
    NO_DATES,
    PLAIN,
    UNITS,
    CellFaults,
    CellFormat,
    DateFormat,
    as_numbers,
    without_missing,
)
from ._data_derived_parameters import (
    TARGETS,
    ParameterCheck,
    are_copies,
    clipping_allowed,
    default_bounds_refused,
    is_natural,
    is_round,
    level_outside,
    refuse_copied_rows,
    refuse_private_rows,
)
from ._declared_columns import (
    MISSING,
    CategoryColumn,
    DateColumn,
    DeclaredColumn,
    FlagColumn,
    NumberColumn,
    column_from_json,
)
from ._decoder_worker import receive_exactly
from ._files import (
    DEFAULT_BATCH_BYTES,
    ColumnBlocks,
    FileState,
    LocalCopy,
    RecordStream,
    expanded,
    file_state,
    is_url,
    open_batches,
    open_source,
    read_columns,
    refuse_repeated,
    row_group_sizes,
    shown_path,
)
from ._graph import DEFAULT_MEMORY, EdgeList, EdgeProgress, Graph, node_number, read_edges, read_pairs
from ._persons import UnitCap, identify
from ._transform import RANDOM_OPERATIONS, OnnxTransform, Transform, operations_of

__all__ = [
    "DAYS", "DEFAULT_BATCH_BYTES", "DEFAULT_MEMORY", "ENCODE", "ENCODINGS", "FEWEST_BITS", "MISSING",
    "MOST_BITS", "MOST_CELLS", "NO_DATES", "PLAIN", "RANDOM_OPERATIONS", "TARGETS", "UNITS", "Batch",
    "Bounds", "CategoryColumn", "CellFaults", "CellFormat", "CellGrid", "Codes", "ColumnBlocks", "DateColumn",
    "DateFormat",
    "DeclaredBounds", "DeclaredColumn", "DeclaredSteps", "EdgeList", "EdgeProgress", "FileState",
    "FlagColumn", "Graph", "LocalCopy", "NumberColumn", "OnnxTransform", "ParameterCheck", "RecordStream",
    "Sets", "Steps", "Transform", "UnitBall", "UnitCap", "are_copies", "as_codes", "as_columns", "as_dense",
    "as_numbers", "as_sets", "as_table", "bins_for_bandwidth", "bounds_in_words", "choose_columns",
    "choose_mixed", "clipped_to_ball", "clipping_allowed", "column_from_json", "column_groups",
    "column_names_of", "columns_in_words", "columns_of", "declared_bounds", "declared_steps",
    "default_bounds_refused", "dense_batch", "distances", "expanded", "file_state", "first_column",
    "from_package", "has_arrow_interface", "identify", "in_memory", "is_frame", "is_natural",
    "is_not_numeric", "is_round", "is_url", "level_outside", "mixed_columns", "names_in_words", "node_number",
    "norms", "numbers_of", "numbers_with_missing", "open_batches", "open_source", "operations_of", "part_of",
    "pyarrow", "quietly", "read_columns", "read_edges", "read_pairs", "read_stream", "receive_exactly",
    "refuse_copied_rows", "refuse_path", "refuse_private_rows", "refuse_repeated", "row_group_sizes",
    "shown_path", "steps_between", "whole_length", "whole_vectors", "without_missing",
]  # fmt: skip
