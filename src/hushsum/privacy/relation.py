"""Which two datasets count as neighbours."""

from __future__ import annotations

from enum import StrEnum

from hushsum.errors import ClaimError


class Relation(StrEnum):
    """The neighbours that a claim makes indistinguishable.

    *Add/remove*: one unit present or absent; the number of records is private. *Replace*: same number of
    records, one of them different; the number of records is public.

    Examples
    --------
    >>> Relation.of("replace")
    <Relation.REPLACE: 'replace'>
    """

    ADD_REMOVE = "add/remove"
    REPLACE = "replace"

    @classmethod
    def of(cls, value: str | Relation) -> Relation:
        """The relation of that name."""
        try:
            return cls(value)
        except ValueError:
            raise ClaimError(
                f"relation must be 'add/remove' or 'replace', got {value!r}; choose one"
            ) from None
