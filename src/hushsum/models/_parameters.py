"""Parameters of models as data: what each may be, what it means, and how it is stored.

A model lists its parameters once. From that list come the checks before a fit, the forms of the service, the
options of ``hushsum fit``, the docstring and the reference page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.declaration import (
    ANY,
    BOUNDS_TYPE,
    FROM_PUBLIC,
    INTEGER,
    LABELS,
    NUMBER,
    OWNER,
    PAIR,
    RECORDS,
    RELEASE,
    TEXT,
    Parameter,
)
from hushsum.errors import UsageError
from hushsum.kernels import SCALES, Kernel, kernel_as_json, kernel_from_json
from hushsum.privacy import PERSON, Claim
from hushsum.records import Bounds, DeclaredColumn, column_from_json

_KERNEL = "a kernel"
_COLUMN = "a column"

EPSILON = Parameter(
    "epsilon", NUMBER, "ε of the one release.", above=0, group=RELEASE
)  # fmt: skip
DELTA = Parameter(
    "delta", NUMBER, "δ of the one release; without it the claim is pure ε.",
    at_least=0, below=1, optional=True, group=RELEASE,
)  # fmt: skip
BOUNDS = Parameter(
    "bounds", BOUNDS_TYPE,
    "The range of every column: declared, never computed from the records, which are clipped to it.",
    group=RECORDS,
)  # fmt: skip
CLASSES = Parameter(
    "classes", LABELS,
    "Every label there is, declared; other labels are refused. Without it the labels found in y are taken as "
    "public knowledge: it warns, and the claim says so.",
    optional=True, group=RECORDS,
)  # fmt: skip
TARGET_BOUNDS = Parameter(
    "target_bounds", PAIR,
    "The range of the target: declared, never computed from the records; targets are clipped to it.",
)  # fmt: skip
SCALE = Parameter(
    "scale", TEXT,
    "What the bandwidth is measured in: the units of the data, or (bounds) the declared range of each "
    "column, of which it is then a fraction. Default: bounds where the declared ranges of two columns differ "
    "by more than ten times.",
    choices=SCALES, optional=True,
)  # fmt: skip
RANDOM_STATE = Parameter(
    "random_state", ANY, "An integer, a RandomState or None: seeds hash functions and features, "
    "never the noise.", optional=True, group=OWNER,
)  # fmt: skip
BUDGET = Parameter(
    "budget", ANY, "The account of the dataset that pays for the release.", optional=True, group=OWNER
)  # fmt: skip
IDEMPOTENCY_KEY = Parameter(
    "idempotency_key", ANY, "Names this release, so that a retry is free.", optional=True, group=OWNER
)  # fmt: skip
MAX_PER_UNIT = Parameter(
    "max_per_unit", INTEGER,
    "Makes the person the unit of privacy: at most this many records of a person are counted, the first "
    "ones, "
    "and the noise is that of so many records. fit and partial_fit then take units, whose record each is.",
    at_least=1, at_most=1 << 20, optional=True, group=RECORDS,
)  # fmt: skip
PUBLIC = Parameter(
    "public", ANY,
    "At least 10 rows like the records that are public, without targets: an array or a frame. They decide "
    "the parameters that are 'public'. What they decide is stored with the model, and the claim says that "
    "they were assumed to be public; they are not stored. A held-out part of the private records is not "
    "public.",
    optional=True, group=OWNER,
)  # fmt: skip
PUBLIC_BOUNDS = replace(
    BOUNDS,
    choices=(FROM_PUBLIC,),
    help=BOUNDS.help + " 'public': that of the public rows, and a tenth of it beyond on either side.",
)


def with_default_bandwidth(parameter: Parameter, part: float) -> Parameter:
    """The parameter; a bandwidth may be left out, and is then that part of the declared range of a column."""
    if parameter.name != "bandwidth" or not part:
        return parameter
    words = f" Default: {part:g} of the declared range of each column, or of the widest where scale is units."
    return replace(parameter, help=parameter.help + words, optional=True)


def documented(docstring: str, parameters: Sequence[Parameter]) -> str:
    """A class docstring with the section *Parameters* put before its next section."""
    lines = docstring.expandtabs().splitlines()
    indent = "    "
    section = ["Parameters", "----------"]
    for each in parameters:
        section += each.described().splitlines()
    rule = next((i for i, line in enumerate(lines) if set(line.strip()) == {"-"}), len(lines) + 1)
    return "\n".join([*lines[: rule - 1], *(indent + line for line in section), "", *lines[rule - 1 :]])


def to_json(name: str, value: object) -> Any:
    """A parameter for a file's header; kernels and declared columns under marks of their own.

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
    if isinstance(value, DeclaredColumn):
        return {_COLUMN: value.as_json()}
    if isinstance(value, Mapping):
        return {str(key): to_json(name, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(name, each) for each in value]
    try:
        return [to_json(name, each) for each in iter(value)]  # type: ignore[call-overload]
    except TypeError:
        raise UsageError(
            name,
            "must be made of numbers, names and kernels to be stored with the model",
            got=type(value).__name__,
            remedy="give such a value",
        ) from None


def from_json(value: Any) -> Any:
    """The inverse of :func:`to_json`, with lists for all sequences.

    >>> from_json(to_json("bounds", ((0, 1), (2, 3))))
    [[0, 1], [2, 3]]
    """
    if isinstance(value, dict):
        if set(value) == {_KERNEL}:
            return kernel_from_json(value[_KERNEL])
        if set(value) == {_COLUMN}:
            return column_from_json(value[_COLUMN])
        return {key: from_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [from_json(each) for each in value]
    return value


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Class labels: integers, reals, truth values or strings.

    >>> labels_to_json(np.array(["no", "yes"]))
    {'kind': 'U', 'values': ['no', 'yes']}
    """
    values = labels.tolist()
    if labels.dtype.kind not in "biufUO" or any(
        not isinstance(each, bool | int | float | str) for each in values
    ):
        raise UsageError(
            "labels", "must be numbers, truth values or strings to be stored", remedy="encode them so"
        )
    return {"kind": labels.dtype.kind, "values": values}


def labels_from_json(data: dict[str, Any]) -> NDArray[Any]:
    """The inverse of :func:`labels_to_json`.

    >>> labels_from_json({"kind": "b", "values": [False, True]})
    array([False,  True])
    """
    types = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64, "U": np.str_, "O": object}
    return np.array(data["values"], dtype=types[data["kind"]])


def parameters_of_claim(claim: Claim) -> dict[str, Any]:
    """ε, δ and the cap as a model's file states them, of a model that was made of a released function."""
    persons = {"max_per_unit": claim.records_per_unit if claim.unit == PERSON else None}
    promise = claim.promise
    if promise.epsilon is None:
        return persons
    delta = float(promise.delta) if promise.delta else None
    return {"epsilon": float(promise.epsilon), "delta": delta, **persons}
