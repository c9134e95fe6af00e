"""What ``tally`` and ``merge`` print: nothing that was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushsum.cli.output import write_facts
from hushsum.jobs.kernel_choice import kernel_in_words

if TYPE_CHECKING:
    from hushsum.jobs.tally_records import TallyWritten


def write_tally(written: TallyWritten) -> None:
    """Print what is public of a tally that was written."""
    write_facts(
        [
            ("tally", f"{written.output} (CONFIDENTIAL{', encrypted' if written.encrypted else ''})"),
            ("kernel", kernel_in_words(written.kernel)),
            ("rows × width", f"{written.rows} × {written.width}"),
            ("unit", written.unit),
            ("fingerprint", written.fingerprint),
        ]
    )
