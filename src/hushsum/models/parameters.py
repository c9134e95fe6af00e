"""Parameters of models as data: what each may be, what it means, and how it is stored.

A model lists its parameters once. From that list come the checks before a fit, the forms of the service, the
options of ``hushsum fit``, the docstring and the reference page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import is_number
from hushsum.errors import UsageError, shown
from hushsum.kernels.bandwidth_scale import SCALES
from hushsum.kernels.base import Kernel
from hushsum.kernels.registry import kernel_as_json, kernel_from_json
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.records.declared_columns import DeclaredColumn
from hushsum.records.declared_columns_json import column_from_json

NUMBER, INTEGER, TEXT, PAIR, BOUNDS_TYPE, LABELS, ANY = (
    "number", "integer", "text", "pair", "bounds", "labels", "any",
)  # fmt: skip
RELEASE, RECORDS, SETTING, OWNER = "release", "records", "setting", "owner"
MOST_LISTED: Final = 64
FROM_PUBLIC: Final = "public"
"""The word in place of a number or of bounds that leaves the parameter to public rows."""
_KERNEL = "a kernel"
_COLUMN = "a column"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a model, declared.

    Parameters
    ----------
    name : str
    type : str
        ``"number"``, ``"integer"``, ``"text"``, ``"pair"`` (low and high), ``"bounds"``, ``"labels"``, or
        ``"any"`` for what only Python can pass.
    help : str
        What it means, in whole sentences of plain text.
    choices : tuple of str
        Of a text, all there are; of a number or of bounds, words that may stand in its place, such as
        ``"auto"``, and ``"public"`` for one that public rows may decide.
    at_least, above, at_most, below : float, optional
        The range of a number.
    optional : bool
        Whether it may be None.
    several : bool
        Whether a list of such values may be given.
    kernel : bool
        Whether a `Kernel` may be given in place of a name.
    group : str
        ``"release"`` (ε and δ), ``"records"`` (bounds and classes), ``"setting"``, or ``"owner"`` for what is
        not stored with the model: the budget, and a generator.
    default : object
        As in the signature; set when the model's class is made.
    """

    name: str
    type: str
    help: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    optional: bool = False
    several: bool = False
    kernel: bool = False
    group: str = SETTING
    default: Any = None

    @property
    def from_public(self) -> bool:
        """Whether public rows may decide it."""
        return self.type != TEXT and FROM_PUBLIC in self.choices

    def left_to_public(self, value: object) -> bool:
        """Whether a value leaves the parameter to public rows.

        >>> Parameter("bandwidth", NUMBER, "Scale.", choices=("public",), several=True).left_to_public([0.1])
        False
        """
        listed = value if isinstance(value, list | tuple) else [value]
        return self.from_public and any(isinstance(each, str) and each == FROM_PUBLIC for each in listed)

    def check(self, value: object) -> None:
        """Refuse what the declaration does not allow.

        >>> Parameter("power", INTEGER, "The kernel to that power.", at_least=1).check(0)
        Traceback (most recent call last):
        ...
        hushsum.errors.UsageError: power must be an integer of at least 1, got 0; see the help of the model

        Raises
        ------
        UsageError
            without showing more of the value than a number or a short name.
        """
        if self._allows(value):
            return
        raise UsageError(
            parameter=self.name,
            rule=f"must be {self.rule()}",
            got=shown(value),
            remedy="see the help of the model",
        )

    def from_form(self, value: object) -> Any:
        """A value that came as JSON, checked; pairs become tuples."""
        if self.type == PAIR and isinstance(value, list):
            value = tuple(value)
        self.check(value)
        return value

    def rule(self, *, none: bool = True) -> str:
        """What is allowed, in words that follow "must be"; ``none=False`` is for surfaces where a parameter
        is left out instead.
        """
        parts = [self._rule_of_one()]
        if self.several:
            parts.append("a list of such values")
        if self.kernel:
            parts.append("a kernel")
        if self.optional and none:
            parts.append("None")
        return ", or ".join(parts)

    def described(self) -> str:
        """The entry of a docstring's section *Parameters*."""
        default = "" if self.group == OWNER else f", default {self.default!r}"
        lines = textwrap.wrap(self.help, 100)
        return "\n".join([f"{self.name} : {self.rule()}{default}", *(f"    {line}" for line in lines)])

    def _rule_of_one(self) -> str:
        words = ", ".join(repr(each) for each in self.choices)
        if self.type == TEXT:
            return f"one of {', '.join(self.choices)}" if words else "a text"
        fixed = {
            PAIR: "(low, high), finite and with low < high",
            BOUNDS_TYPE: "(low, high), a list of one pair for each column, or a dict of pairs by column name",
            LABELS: "a list of labels",
            ANY: "an object",
        }
        if self.type in fixed:
            return f"{fixed[self.type]}, or {words}" if words else fixed[self.type]
        kind = "an integer" if self.type == INTEGER else "a number"
        if self.at_least is not None and self.at_most is not None:
            ends = [f"from {self.at_least:g} to {self.at_most:g}"]
        else:
            ends = [
                f"{word} {end:g}"
                for word, end in (
                    ("of at least", self.at_least),
                    ("above", self.above),
                    ("at most", self.at_most),
                    ("below", self.below),
                )
                if end is not None
            ]
        text = " ".join([kind, " and ".join(ends)]).rstrip()
        return f"{text} or {words}" if words else text

    def _allows(self, value: object) -> bool:
        if value is None:
            return self.optional
        if self.kernel and isinstance(value, Kernel):
            return True
        if self.several and isinstance(value, list | tuple | np.ndarray):
            return 0 < len(value) <= MOST_LISTED and all(self._allows_one(each) for each in value)
        return self._allows_one(value)

    def _allows_one(self, value: Any) -> bool:
        if self.type in (ANY, BOUNDS_TYPE, LABELS):
            return True
        if isinstance(value, str):
            return value in self.choices if self.choices else self.type == TEXT
        if self.type == PAIR:
            pair = isinstance(value, list | tuple | np.ndarray) and len(value) == 2
            return pair and all(map(_is_finite, value)) and bool(value[0] < value[1])
        if self.type == TEXT or not _is_finite(value):
            return False
        if self.type == INTEGER and not isinstance(value, int | np.integer):
            return False
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )


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
OWNER_PARAMETERS = (
    Parameter(
        "random_state", ANY, "An integer, a RandomState or None: seeds hash functions and features, "
        "never the noise.", optional=True, group=OWNER,
    ),
    Parameter(
        "budget", ANY, "The account of the dataset that pays for the release.", optional=True,
        group=OWNER,
    ),
    Parameter(
        "idempotency_key", ANY, "Names this release, so that a retry is free.", optional=True, group=OWNER
    ),
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


def without_public(parameter: Parameter) -> Parameter:
    """The parameter of a model that takes no public rows."""
    if not parameter.from_public:
        return parameter
    return replace(parameter, choices=tuple(each for each in parameter.choices if each != FROM_PUBLIC))


def with_default_bandwidth(parameter: Parameter, part: float) -> Parameter:
    """The parameter; a bandwidth may be left out, and is then that part of the declared range of a column."""
    if parameter.name != "bandwidth" or not part:
        return parameter
    words = f" Default: {part:g} of the declared range of each column, or of the widest where scale is units."
    return replace(parameter, help=parameter.help + words, optional=True)


def with_defaults(declared: Iterable[Parameter], defaults: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The declarations in the order of a signature, each with its default.

    Raises
    ------
    TypeError
        if a parameter of the signature is not declared, or one is declared that it does not have.
    """
    known = {each.name: each for each in declared}
    if set(known) != set(defaults):
        raise TypeError(f"declared and actual parameters differ: {sorted(set(known) ^ set(defaults))}")
    return tuple(replace(known[name], default=value) for name, value in defaults.items())


def documented(docstring: str, parameters: Sequence[Parameter]) -> str:
    """A class docstring with the section *Parameters* put before its next section."""
    lines = docstring.expandtabs().splitlines()
    indent = "    "
    section = ["Parameters", "----------"]
    for each in parameters:
        section += each.described().splitlines()
    rule = next((i for i, line in enumerate(lines) if set(line.strip()) == {"-"}), len(lines) + 1)
    return "\n".join([*lines[: rule - 1], *(indent + line for line in section), "", *lines[rule - 1 :]])


def _is_finite(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


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
            parameter=name,
            rule="must be made of numbers, names and kernels to be stored with the model",
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
    """Class labels: whole numbers, reals, truth values or strings.

    >>> labels_to_json(np.array(["no", "yes"]))
    {'kind': 'U', 'values': ['no', 'yes']}
    """
    values = labels.tolist()
    if labels.dtype.kind not in "biufUO" or any(
        not isinstance(each, bool | int | float | str) for each in values
    ):
        raise UsageError(
            parameter="labels",
            rule="must be numbers, truth values or strings to be stored",
            remedy="encode them so",
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
    """ε and δ as a model's file states them, of a model that was made of a released function."""
    promise = claim.promise
    if promise.epsilon is None:
        return {}
    return {"epsilon": float(promise.epsilon), "delta": float(promise.delta) if promise.delta else None}
