"""Parquet and Arrow files, read a slice of a row group at a time."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Final

from hushsum.errors import DataRefused
from hushsum.records import arrow

_NUMBER_BYTES: Final = 8


class ParquetSource:
    """A Parquet file; see `hushsum.records.streams.Source`."""

    def __init__(self, path: Path, name: str, batch_bytes: int) -> None:
        self._name = name
        self._batch_bytes = batch_bytes
        self._read = 0
        self._columns: list[str] = []
        try:
            # A buffer of its own makes the reader take pages as they come, instead of whole row groups.
            self._file = arrow.pyarrow("parquet").ParquetFile(path, pre_buffer=False, buffer_size=1 << 18)
        except PermissionError:
            raise
        except (arrow.pyarrow().ArrowException, OSError, EOFError):
            raise unreadable(name, "Parquet") from None
        self.column_names: list[str] = list(self._file.schema_arrow.names)

    @property
    def progress(self) -> float | None:
        """The fraction of the rows that has been read."""
        rows = self._file.metadata.num_rows
        return self._read / rows if rows else 1.0

    def choose(self, columns: Sequence[str], unit_column: str | None, set_column: str | None) -> None:
        """Check the types that the schema declares."""
        refuse_other_types(self._file.schema_arrow, columns, set_column)
        self._columns = [*columns, *([] if unit_column is None else [unit_column])]

    def batches(self) -> Generator[Any, None, None]:
        """Read so many rows at a time that they fill a batch."""
        try:
            for batch in self._file.iter_batches(
                self._rows_at_a_time(), columns=self._columns, use_threads=False
            ):
                self._read += batch.num_rows
                yield batch
            return
        except (arrow.pyarrow().ArrowException, OSError, EOFError):
            pass
        raise unreadable(self._name, "Parquet")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rows_at_a_time(self) -> int:
        """Rows per batch by the widest row group; a value counts in full, however well it is compressed."""
        metadata = self._file.metadata
        widest = float(_NUMBER_BYTES)
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            leaves = [group.column(j) for j in range(group.num_columns)]
            size = sum(
                max(leaf.num_values * _NUMBER_BYTES, leaf.total_uncompressed_size)
                for leaf in leaves
                if any(leaf.path_in_schema.startswith(column) for column in self._columns)
            )
            widest = max(widest, size / max(1, group.num_rows))
        return max(1, int(self._batch_bytes / widest))


class ArrowSource:
    """An Arrow IPC file, which is Feather version 2; see `hushsum.records.streams.Source`."""

    def __init__(self, path: Path, name: str, batch_bytes: int) -> None:
        self._name = name
        self._batch_bytes = batch_bytes
        self._read = 0
        self._map = None
        try:
            self._map = arrow.pyarrow().memory_map(str(path))
            self._file = arrow.pyarrow("ipc").open_file(self._map)
        except PermissionError:
            raise
        except (arrow.pyarrow().ArrowException, OSError, EOFError):
            self.close()
            raise unreadable(name, "Arrow") from None
        self.column_names: list[str] = list(self._file.schema.names)

    @property
    def progress(self) -> float | None:
        """The fraction of the stored batches that has been read."""
        stored = self._file.num_record_batches
        return self._read / stored if stored else 1.0

    def choose(self, columns: Sequence[str], unit_column: str | None, set_column: str | None) -> None:
        """Check the types that the schema declares."""
        refuse_other_types(self._file.schema, columns, set_column)

    def batches(self) -> Generator[Any, None, None]:
        """Read the stored batches, the large ones in slices."""
        for i in range(self._file.num_record_batches):
            try:
                stored = self._file.get_batch(i)
            except (arrow.pyarrow().ArrowException, OSError, EOFError):
                raise unreadable(self._name, "Arrow") from None
            width = max(_NUMBER_BYTES, stored.nbytes / max(1, stored.num_rows))
            rows = max(1, int(self._batch_bytes / width))
            for start in range(0, stored.num_rows, rows):
                yield stored.slice(start, rows)
            self._read = i + 1

    def close(self) -> None:
        """Close the file."""
        if self._map is not None:
            self._map.close()


def unreadable(name: str, kind: str) -> DataRefused:
    """The refusal of a file, without the engine's own words, which may quote data."""
    return DataRefused(
        f"{name} cannot be read as {kind}; it is damaged, or of another kind than its name says"
    )


def refuse_other_types(schema: Any, columns: Sequence[str], set_column: str | None) -> None:
    """Raise DataRefused for the first chosen column that is neither numbers nor lists of numbers."""
    for column in columns:
        kind = schema.field(column).type
        while isinstance(kind, arrow.pyarrow().BaseExtensionType):
            kind = kind.storage_type
        listed = arrow.is_any_list(kind)
        inner = kind.value_type if listed else kind
        if column == set_column:
            if not (listed and arrow.pyarrow().types.is_integer(inner)):
                raise DataRefused(
                    f"column {column!r} must have lists of integers, got {kind}; "
                    "number the members with a public list of them"
                )
        elif not arrow.is_number(inner):
            categories = arrow.pyarrow().types.is_dictionary(kind)
            raise DataRefused(
                f"column {column!r} must be of numbers, got {'categories' if categories else kind}; "
                "encode it with a public list of categories, or leave the column out"
            )
