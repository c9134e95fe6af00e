"""What ``tally`` and ``merge`` print: nothing that was counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hushsum.cli.output import write_facts
from hushsum.jobs.kernel_choice import kernel_in_words

if TYPE_CHECKING:
    from hushsum.jobs.tally_records import TallyWritten
    from hushsum.records.bounds import Bounds

_MOST_NAMES: Final = 8


def write_tally(written: TallyWritten) -> None:
    """Print what is public of a tally that was written."""
    columns = written.columns
    write_facts(
        [
            ("tally", f"{written.output} (CONFIDENTIAL{', encrypted' if written.encrypted else ''})"),
            *([] if columns is None else [("columns", names_in_words(columns))]),
            ("kernel", kernel_in_words(written.kernel)),
            ("bounds", bounds_in_words(written.bounds)),
            ("table", f"{written.basis}, {written.rows} × {written.width}"),
            ("unit", written.unit),
            ("fingerprint", written.fingerprint),
        ]
    )


def names_in_words(names: Sequence[str]) -> str:
    """Names on one line, the middle of a long list left out.

    >>> names_in_words([f"x{i}" for i in range(100)])
    'x0, x1, x2, x3, x4, x5, …, x99 (100 columns)'
    """
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMES - 2])}, …, {names[-1]} ({len(names)} columns)"


def bounds_in_words(bounds: Bounds | None) -> str:
    """Declared bounds on one line, the middle of a long list left out, and once if all are the same."""
    if bounds is None:
        return "none declared"
    ranges = [f"{low:g}:{high:g}" for low, high in zip(bounds.low, bounds.high, strict=True)]
    if len(ranges) > 2 and len(set(ranges)) == 1:
        return f"{ranges[0]} for each of {len(ranges)} columns"
    return names_in_words(ranges)
