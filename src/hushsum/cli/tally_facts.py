"""What ``tally`` and ``merge`` print: nothing that was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushsum.cli.output import write_facts
from hushsum.kernels.parameters import kernel_in_words
from hushsum.records.bounds import bounds_in_words, names_in_words

if TYPE_CHECKING:
    from hushsum.jobs.tally_records import TallyWritten


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
