"""Which two datasets count as neighbours."""

from __future__ import annotations

from enum import StrEnum

from hushsum.errors import ClaimError, shown


class Relation(StrEnum):
    """The neighbours that a claim makes indistinguishable.

    *Add/remove*: one unit present or absent; the number of records is private. *Replace*: one unit is this or
    another; where the unit is a record, the number of records is public.

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
                parameter="relation",
                rule="must be 'add/remove' or 'replace'",
                got=shown(value),
                remedy="choose one",
            ) from None
