"""What a summary should resemble: a file of records, or a consumer's release of one under a secret seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushsum._types import Floats
from hushsum.errors import FileRefused, Parameter, UsageError
from hushsum.jobs.summarize_records import read_columns
from hushsum.jobs.summarize_terms import RunChoice
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.summarize.hashed_target import HashedTarget
from hushsum.summarize.target import NoisyTarget

HASHES = "hashes"
"""The column of a summary's file that holds hashes."""

_MOST = 1 << 24


@dataclass(frozen=True, slots=True, repr=False)
class Validation:
    """The columns that are compared, and the validation set: exact ``points``, or a release of them.

    ``widths`` has the name and the width of each column that the summary's points have. ``check`` is that of
    the hash secret.
    """

    names: tuple[str, ...]
    dim: int
    widths: tuple[tuple[str, int], ...]
    points: Floats | None = None
    released: NoisyTarget | None = None
    check: str = ""


def read_validation(
    validation: str,
    columns: tuple[str, ...] | None,
    carried: tuple[str, ...],
    run: RunChoice,
    cells: CellFormat = PLAIN,
) -> Validation:
    """Read the validation set, whose cells are written as declared, or with ``run.hashed`` its release.

    Raises
    ------
    UsageError
        no column is left to compare, or the release was made for another run than the requested one.
    FileRefused
        the release is damaged.
    """
    if run.hashed:
        return _released(validation, columns, carried, run)
    records = read_columns(validation, columns, cells)
    names = tuple(name for name in records.blocks if name not in carried)
    if not names:
        raise UsageError(
            parameter="validation",
            rule="must be a file with a column to compare",
            remedy=("see ", Parameter("columns"), " and ", Parameter("carry")),
        )
    widths = tuple((name, records.blocks[name].shape[1]) for name in names)
    return Validation(names, records.width(names), widths, points=records.choose(names))


def _released(
    validation: str, columns: tuple[str, ...] | None, carried: tuple[str, ...], run: RunChoice
) -> Validation:
    path = Path(validation)
    if not path.is_file():
        raise UsageError(
            parameter="validation",
            rule="must be an existing file",
            got=f"{validation!r}",
            remedy="get it from: hushsum summarize validation",
        )
    try:
        with path.open("rb") as stream:
            made = HashedTarget.from_bytes(stream.read(_MOST))
    except FileRefused:
        raise FileRefused(
            parameter="validation",
            rule=("must be an undamaged validation release, which ", Parameter("hashes"), " needs"),
            got=f"{validation!r}",
            remedy="make one with: hushsum summarize validation",
        ) from None
    if made.features != run.compared(made.features.dim):
        raise UsageError(
            rule=(
                "the validation release has another ",
                Parameter("bandwidth"),
                " or ",
                Parameter("features"),
            ),
            remedy="repeat its options",
        )
    if made.target.rho != run.validation_rho:
        raise UsageError(
            rule=(
                "the validation release was made for another ",
                Parameter("epsilon"),
                ", ",
                Parameter("delta"),
                " or ",
                Parameter("validation_share"),
            ),
            remedy="repeat its options",
        )
    if columns is not None and columns != made.columns:
        raise UsageError(
            parameter="columns",
            rule="must be those of the validation release",
            remedy="leave it out",
        )
    if HASHES in carried:
        raise UsageError(
            parameter="carry",
            rule=f"must not have {HASHES!r}, the summary's own column",
            remedy="rename it",
        )
    widths = ((HASHES, made.features.width),)
    return Validation(made.columns, made.features.dim, widths, released=made.target, check=made.check)
