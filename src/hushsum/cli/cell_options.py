"""How cells of files are read, from the options of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushsum.cli import values

if TYPE_CHECKING:
    from hushsum.records.cell_format import CellFormat


def cell_format(
    *,
    decimal: str,
    drop_missing: bool = False,
    dates: str | None,
    date_format: str | None,
    date_unit: str,
    date_origin: str,
    sheet: str | None,
) -> CellFormat:
    """What is declared about the cells of files."""
    from hushsum.records.cell_format import CellFormat
    from hushsum.records.dates import DateFormat

    columns = values.names(dates, "dates") or ()
    return CellFormat(decimal, drop_missing, DateFormat(columns, date_format, date_unit, date_origin), sheet)
