"""Files of records as the parties of a summarization hold them: blocks of numbers by column name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, Parameter, UsageError
from hushsum.files.durable_files import atomic_file
from hushsum.records.arrow import is_any_list, pyarrow
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.records.columns_by_name import numbers_of
from hushsum.records.record_batches import open_batches


@dataclass(frozen=True, slots=True, repr=False)
class ColumnBlocks:
    """Columns of records by name, each of shape (records, width); a column of lists is wider than 1."""

    blocks: dict[str, Floats]

    def __repr__(self) -> str:
        return f"<ColumnBlocks CONFIDENTIAL of {', '.join(self.blocks)}>"

    def choose(self, names: Sequence[str]) -> Floats:
        """These columns side by side, shape (records, width).

        Raises
        ------
        UsageError
            for a name that is not among them.
        """
        for name in names:
            if name not in self.blocks:
                raise UsageError(
                    rule=(f"column {name!r} is requested, and not among ", Parameter("columns")),
                    remedy="add it there",
                )
        chosen = [self.blocks[name] for name in names]
        return chosen[0] if len(chosen) == 1 else np.concatenate(chosen, axis=1)

    def width(self, names: Sequence[str]) -> int:
        """How many numbers a record has in these columns."""
        return sum(self.blocks[name].shape[1] for name in names)


def read_columns(path: str, columns: Sequence[str] | None, cells: CellFormat = PLAIN) -> ColumnBlocks:
    """Read the columns of a file, whose cells are written as declared; all of them by default.

    Raises
    ------
    UsageError, DataRefused
        as `open_batches` does, and for numbers that are not finite.
    """
    parts: dict[str, list[NDArray[Any]]] = {}
    with open_batches(path, columns=columns, cells=cells) as stream:
        for batch, _ in stream:
            for name in stream.column_names:
                parts.setdefault(name, []).append(_numbers(batch.select([name]), name))
    widths = {name: {each.shape[1] for each in found} for name, found in parts.items()}
    for name, found in widths.items():
        if len(found) > 1:
            raise DataRefused(
                rule=f"column {name!r} must have lists of one length", remedy="pad them, or leave it out"
            )
    # Parts are as narrow as the file's numbers, and are given up column by column.
    blocks = {name: np.concatenate(parts.pop(name), dtype=np.float64) for name in list(parts)}
    pyarrow().default_memory_pool().release_unused()
    return ColumnBlocks(blocks)


def _numbers(batch: Any, name: str) -> NDArray[Any]:
    column = batch.column(0)
    listed = is_any_list(column.type) and column.null_count == 0
    width = len(column[0]) if listed else 1
    (part,) = numbers_of(batch, dim=max(width, 1))
    values = part.values
    if not np.isfinite(values).all():
        raise DataRefused(
            rule=f"column {name!r} must be finite",
            got="NaN or infinity",
            remedy="fill it with a public constant or drop those records",
        )
    # A copy: a view would keep the file's whole batch.
    return values.copy()


def write_columns(path: Path, columns: dict[str, Floats]) -> None:
    """Write a Parquet file of these columns, whole or not at all; those wider than 1 as lists.

    It holds records of the owners, so nobody but its owner may read it.
    """
    import io

    pa, parquet = pyarrow(), pyarrow("parquet")
    arrays = {}
    for name, values in columns.items():
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        width = values.shape[1]
        arrays[name] = flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)
    buffer = io.BytesIO()
    parquet.write_table(pa.table(arrays), buffer, compression="zstd")
    with atomic_file(path, mode=0o600) as stream:
        stream.write(buffer.getvalue())
