"""Public parameters of a model as JSON values, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel, kernel_as_json, kernel_from_json
from hushsum.records.bounds import Bounds

_KERNEL = "a kernel"


def to_json(name: str, value: object) -> Any:
    """A parameter for a file's header; kernels under a mark of their own.

    >>> to_json("bandwidth", (np.float64(0.5), None))
    [0.5, None]
    """
    if isinstance(value, np.generic | np.ndarray):
        return to_json(name, value.tolist())
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Kernel):
        return {_KERNEL: kernel_as_json(value)}
    if isinstance(value, Bounds):
        return value.as_json()
    if isinstance(value, Mapping):
        return {str(key): to_json(name, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(name, each) for each in value]
    try:
        return [to_json(name, each) for each in iter(value)]  # type: ignore[call-overload]
    except TypeError:
        raise UsageError(
            f"{name} must be made of numbers, names and kernels to be stored with the model, "
            f"got {type(value).__name__}; give such a value"
        ) from None


def from_json(value: Any) -> Any:
    """The inverse of :func:`to_json`, with lists for all sequences.

    >>> from_json(to_json("bounds", ((0, 1), (2, 3))))
    [[0, 1], [2, 3]]
    """
    if isinstance(value, dict):
        if set(value) == {_KERNEL}:
            return kernel_from_json(value[_KERNEL])
        return {key: from_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [from_json(each) for each in value]
    return value


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Class labels: whole numbers, reals, truth values or strings.

    >>> labels_to_json(np.array(["no", "yes"]))
    {'kind': 'U', 'values': ['no', 'yes']}
    """
    values = labels.tolist()
    if labels.dtype.kind not in "biufUO" or any(
        not isinstance(each, bool | int | float | str) for each in values
    ):
        raise UsageError("labels must be numbers, truth values or strings to be stored; encode them so")
    return {"kind": labels.dtype.kind, "values": values}


def labels_from_json(data: dict[str, Any]) -> NDArray[Any]:
    """The inverse of :func:`labels_to_json`.

    >>> labels_from_json({"kind": "b", "values": [False, True]})
    array([False,  True])
    """
    types = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64, "U": np.str_, "O": object}
    return np.array(data["values"], dtype=types[data["kind"]])
