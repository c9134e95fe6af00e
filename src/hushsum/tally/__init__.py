"""Tallies: secret, exact integer sums over records, which are merged, saved and released."""

from ._file import (
    DEFAULT_SECONDS,
    Checkpoint,
    TallyPattern,
    build,
    described,
    is_empty,
    load_tally,
    payload_size,
    public_header,
    save_tally,
    stored_job,
    tally_as_message,
    tally_from_bytes,
)
from ._release import TableRelease, claimed_unit, rounding_step, row_blocks
from ._tally import (
    Tally,
    add_removals,
    differing_parameters,
    exact_cells,
    has_removals,
    is_graph,
    leave_room,
    sums_with_share,
    take_increment,
    with_cells,
)

__all__ = [
    "DEFAULT_SECONDS", "Checkpoint", "TableRelease", "Tally", "TallyPattern", "add_removals", "build",
    "claimed_unit", "described", "differing_parameters", "exact_cells", "has_removals", "is_empty",
    "is_graph", "leave_room", "load_tally", "payload_size", "public_header", "rounding_step", "row_blocks",
    "save_tally", "stored_job", "sums_with_share", "take_increment", "tally_as_message", "tally_from_bytes",
    "with_cells",
]  # fmt: skip
