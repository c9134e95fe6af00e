"""Health and problems."""

from __future__ import annotations

from pydantic import BaseModel, Field

from hushsum.service.shapes.basic import Told


class Health(Told):
    """Whether the process lives, or can work; and if not, why."""

    status: str
    reasons: list[str] = Field(default=[])


class Problem(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request: str
    faults: list[dict[str, str]] = []
