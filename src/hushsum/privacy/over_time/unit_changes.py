"""How far one unit moves the steps of a stream, from how far one record moves a table.

The proofs are in the texts of `hushsum.privacy.over_time.matrix_factorisation` and `tree_sums`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation


@dataclass(frozen=True, slots=True)
class StepChange:
    """Bounds on what one unit adds to the vectors of all steps together, wherever its records stand.

    ``l1`` is the sum of absolute values. ``l2_squared`` is the square of the length that remains after a
    convolution with weights of at least 0 and length 1. ``touched`` is how many coordinates may change.
    """

    l1: int
    l2_squared: int
    touched: int


def step_changes(
    record: dict[Relation, Sensitivity],
    relation: Relation,
    *,
    per_unit: int | None,
    removals: bool,
    cells: int,
) -> tuple[StepChange, StepChange]:
    """The change of the table and that of the number of records.

    Parameters
    ----------
    record : dict
        How far one record moves a table, for both relations.
    per_unit : int, optional
        Persons with up to so many records over the whole horizon, removals included; None: a unit is one
        record.
    removals : bool
        Whether a record may be removed again, by one of opposite sign.
    cells : int
        How many the table has.

    Examples
    --------
    >>> one = {Relation.ADD_REMOVE: Sensitivity(100, 100, 1), Relation.REPLACE: Sensitivity(200, 200, 1)}
    >>> step_changes(one, Relation.REPLACE, per_unit=None, removals=False, cells=5000)
    (StepChange(l1=200, l2_squared=200, touched=200), StepChange(l1=2, l2_squared=2, touched=1))
    """
    counted = {Relation.ADD_REMOVE: Sensitivity(1, 1, 1), Relation.REPLACE: Sensitivity(0, 0, 0)}

    def change(moved: dict[Relation, Sensitivity], many_cells: int) -> StepChange:
        alone, replaced = moved[Relation.ADD_REMOVE], moved[Relation.REPLACE]
        many = per_unit or 1
        if relation is Relation.ADD_REMOVE:
            # A record and its removal are 2·(‖c‖² − κ) apart, not 4; a person's removals count as records.
            pair = 2 if removals and per_unit is None else 1
            l1, squared = pair * alone.l1, pair * alone.l2_squared
        elif removals:
            pair = 2 if per_unit is None else 1
            l1, squared = 2 * pair * alone.l1, 4 * pair * alone.l2_squared
        else:
            l1 = max(replaced.l1, 2 * alone.l1)
            squared = max(replaced.l2_squared, 2 * alone.l2_squared)
        l1, squared = many * l1, many**2 * squared
        return StepChange(l1, squared, min(many_cells, l1))

    return change(record, cells), change(counted, 1)
