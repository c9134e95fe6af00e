"""How the cells of files are read: the decimal sign, and what happens to records with missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hushsum.errors import UsageError
from hushsum.records.arrow import pyarrow
from hushsum.records.written_numbers import check_decimal


@dataclass(frozen=True, slots=True)
class CellFormat:
    """What is declared about the cells of files; all of it is public.

    Parameters
    ----------
    decimal : {".", ","}
        Of numbers in CSV files.
    drop_missing : bool
        Leave out records in which a chosen cell is missing: a null or NaN, and in CSV an empty cell or one
        such as ``NA``. Otherwise such files are refused.

    Privacy
    -------
    Whether a record is left out depends on that record alone. How many were is private, and nothing counts
    them. A record that is replaced by one with a missing cell changes the number of records that are counted,
    which is public and exact under replace: so records are dropped for claims under add/remove alone.
    """

    decimal: str = "."
    drop_missing: bool = False

    def __post_init__(self) -> None:
        check_decimal(self.decimal)

    def check_relation(self, relation: str | None) -> None:
        """Refuse to drop records for a claim under replace, or for a tally (None), whose claim is not known.

        Raises
        ------
        UsageError
            in these cases.
        """
        if self.drop_missing and relation != "add/remove":
            raise UsageError(
                parameter="drop_missing",
                rule="is for releases under add/remove, because it changes the number of records",
                got="a tally" if relation is None else "replace",
                remedy="write a file without those records first",
            )

    def kept(self, batch: Any) -> Any:
        """The batch without records that have a missing cell, where they are dropped."""
        if not self.drop_missing:
            return batch
        compute, types = pyarrow("compute"), pyarrow().types
        mask = None
        for column in batch.columns:
            present = compute.is_valid(column)
            if types.is_floating(column.type):
                absent = compute.fill_null(compute.is_nan(column), True)
                present = compute.and_(present, compute.invert(absent))
            mask = present if mask is None else compute.and_(mask, present)
        return batch if mask is None else batch.filter(mask)


PLAIN: Final = CellFormat()
"""Decimal points, and every cell present."""
