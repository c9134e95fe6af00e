"""The folder for what must outlive the files it is about."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """Where Hushsum keeps what must outlive a ledger or a stream: ``$HUSHSUM_STATE``, or ``hushsum`` in the
    user's state folder.
    """
    own = os.environ.get("HUSHSUM_STATE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "hushsum"
