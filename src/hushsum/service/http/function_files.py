"""The public file of a function as a response."""

from __future__ import annotations

from fastapi.responses import FileResponse

from hushsum.service.http.context import Context
from hushsum.service.http.problem_responses import Refusal


def function_file(
    context: Context, id: str, name: str, headers: dict[str, str] | None = None
) -> FileResponse:
    """The file, to be saved under the function's name."""
    path = context.settings.path("functions", f"{id}.hush")
    if not path.is_file():
        raise Refusal(503, "file-missing", "the function's file is missing; report it to the administrator")
    return FileResponse(path, media_type="application/octet-stream", filename=f"{name}.hush", headers=headers)
