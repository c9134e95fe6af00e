"""The description of the service as it is committed.

``python -m tests.docs.service_openapi`` writes it anew.
"""

from __future__ import annotations

import os
import tempfile
from typing import Final
from unittest.mock import patch

from fastapi import FastAPI

from hushsum.service.http.app import create_app
from hushsum.service.http.openapi import as_text
from hushsum.service.settings import Settings

from .pages import DOCS

PATH: Final = DOCS / "reference" / "openapi.json"


def application() -> FastAPI:
    """The service on a folder that is gone afterwards: only its description is of use."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, HUSHSUM_STATE=f"{folder}/state"):
        return create_app(Settings(folder=f"{folder}/service", admin_token="x" * 32))


if __name__ == "__main__":
    PATH.write_text(as_text(application()), encoding="utf-8")
