"""Read whatever was released: a function or a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushsum._types import PathOrFile
from hushsum.releases import Bundle, ReleasedFunction, function_in, load_released

if TYPE_CHECKING:
    from hushsum.models import PrivateModel


def load(source: PathOrFile) -> ReleasedFunction | PrivateModel:
    """Load a ``.hush`` file: a released function, or a released model of :mod:`hushsum.models`.

    Which of the two it is only the file knows. Where that is known beforehand,
    :func:`hushsum.releases.load_function` and :func:`hushsum.models.load_model` have the exact types, and
    refuse a file of the other kind.

    Raises
    ------
    FileRefused
        if the file is damaged, of a later version or of another kind, such as a confidential tally.
    UsageError
        if there is no such file.

    Examples
    --------
    >>> import io
    >>> import hushsum as hs
    >>> file = io.BytesIO()
    >>> hs.release([[1.0], [2.0]] * 500, epsilon=1.0, bandwidth=1.0, bounds=(0, 4)).save(file)
    >>> _ = file.seek(0)
    >>> hs.load(file).bounds
    Bounds(low=(0.0,), high=(4.0,))
    """
    released = load_released(source)
    if not isinstance(released, Bundle):
        return function_in(released)
    # scikit-learn is imported for models alone.
    from hushsum.models import model_of

    return model_of(released)
