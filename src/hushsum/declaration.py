"""Parameters as data: what each may be, what it means, and where surfaces show it.

A request declares its parameters once, as the fields of a frozen dataclass, and so does a model: `setting`
makes a field that is declared. The checks, the options of the command line, the bodies and forms of the
service, docstrings and reference pages are made from that. A release is declared in `hushsum.privacy`;
records, kernels, tables and plans in `hushsum.planning`; what only commands do in `hushsum.operations`.

>>> @dataclass(frozen=True)
... class Smoothing:
...     bandwidth: float | None = setting(None, "Scale of the kernel.", above=0)
>>> [(each.name, each.type, each.optional) for each in parameters_of(Smoothing)]
[('bandwidth', 'number', True)]
>>> check_fields(Smoothing(-1.0))
Traceback (most recent call last):
...
hushsum.errors.UsageError: bandwidth must be a number above 0, got -1.0
"""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache, wraps
from typing import Any, Final, ParamSpec, TypeVar, dataclass_transform

import numpy as np

from hushsum._types import is_number
from hushsum.errors import UsageError, shown

NUMBER, INTEGER, TEXT, FLAG, PAIR, BOUNDS_TYPE, LABELS, ANY = (
    "number", "integer", "text", "flag", "pair", "bounds", "labels", "any",
)  # fmt: skip
R = TypeVar("R")
T = TypeVar("T")
P = ParamSpec("P")

RELEASE, RECORDS, SETTING, OWNER = "release", "records", "", "owner"
MOST_LISTED: Final = 64
FROM_PUBLIC: Final = "public"
"""The word in place of a number or of bounds that leaves the parameter to public rows."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, declared. What `setting` declares has the name, type and default of its field.

    Parameters
    ----------
    name : str
        What every surface calls it.
    type : str
        ``"number"``, ``"integer"``, ``"text"``, ``"flag"``, ``"pair"`` (low and high), ``"bounds"``,
        ``"labels"``, or ``"any"`` for what only Python can pass.
    help : str
        What it means, in whole sentences of plain text.
    choices : tuple of str, or callable
        All values of a text. For a number or bounds: words that may stand in its place, such as ``"auto"``,
        and ``"public"`` for one that public rows may decide. A function is called when they are needed.
    at_least, above, at_most, below : float, optional
        The range of a number.
    optional : bool
        Whether it may be None.
    several : bool
        Whether a list of such values may be given.
    kernel : bool
        Whether a `Kernel` may be given in place of a name.
    group : str
        Of a model: ``"release"`` (ε and δ), ``"records"`` (bounds and classes), ``""`` for its settings, or
        ``"owner"`` for what is not stored with the model: the budget, and a generator. Of a request: the
        heading under which help lists it; ``""`` for what most people need, ``None`` for what no help lists.
    suggestions : callable, optional
        Values of a text that a shell completes, where others are allowed too.
    metavar : str, optional
        What stands for the value in the help of a command.
    default : object
        As in the signature or of the field.
    """

    name: str = ""
    type: str = ""
    help: str = ""
    choices: tuple[str, ...] | Callable[[], Sequence[str]] = ()
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    optional: bool = False
    several: bool = False
    kernel: bool = False
    group: str | None = SETTING
    suggestions: Callable[[], Sequence[str]] | None = None
    metavar: str | None = None
    default: Any = None

    def words(self) -> tuple[str, ...]:
        """The choices."""
        return tuple(self.choices()) if callable(self.choices) else self.choices

    @property
    def from_public(self) -> bool:
        """Whether public rows may decide it."""
        return self.type != TEXT and FROM_PUBLIC in self.words()

    def left_to_public(self, value: object) -> bool:
        """Whether a value leaves the parameter to public rows.

        >>> Parameter("bandwidth", NUMBER, "Scale.", choices=("public",), several=True).left_to_public([0.1])
        False
        """
        listed = value if isinstance(value, list | tuple) else [value]
        return self.from_public and any(isinstance(each, str) and each == FROM_PUBLIC for each in listed)

    def check(self, value: object, *, of_model: bool = True, none: bool | None = None) -> None:
        """Refuse what the declaration does not allow; ``none`` says whether the message offers None, by
        default that of a model.

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
            self.name,
            f"must be {self.rule(none=of_model if none is None else none)}",
            got="an empty list" if isinstance(value, list | tuple) and not value else shown(value),
            remedy="see the help of the model" if of_model else None,
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
        words = ", ".join(map(repr, self.words()))
        if self.type == TEXT:
            return f"one of {', '.join(self.words())}" if words else "a text"
        fixed = {
            PAIR: "(low, high), finite and with low < high",
            BOUNDS_TYPE: "(low, high), a list of one pair for each column, or a dict of pairs by column name",
            LABELS: "a list of labels",
            ANY: "an object",
            FLAG: "true or false",
        }
        if self.type in fixed:
            return f"{fixed[self.type]}, or {words}" if words else fixed[self.type]
        kind = "an integer" if self.type == INTEGER else "a number"
        if self.at_least is not None and self.at_most is not None:
            ends = [f"from {self.at_least:g} to {self.at_most:g}"]
        else:
            words_of = ("of at least", "above", "at most", "below")
            limits = (self.at_least, self.above, self.at_most, self.below)
            ends = [f"{word} {end:g}" for word, end in zip(words_of, limits, strict=True) if end is not None]
        text = " ".join([kind, " and ".join(ends)]).rstrip()
        return f"{text} or {words}" if words else text

    def _allows(self, value: object) -> bool:
        if value is None:
            return self.optional
        if self.kernel and _is_kernel(value):
            return True
        if self.several and isinstance(value, list | tuple | np.ndarray):
            named = self.type == TEXT and not self.choices  # as many as there are columns or labels
            return 0 < len(value) <= (len(value) if named else MOST_LISTED) and all(
                map(self._allows_one, value)
            )
        return self._allows_one(value)

    def _allows_one(self, value: Any) -> bool:
        if self.type in (ANY, BOUNDS_TYPE, LABELS):
            return True
        if isinstance(value, str):
            return value in self.words() if self.choices else self.type == TEXT
        if self.type == FLAG:
            return isinstance(value, bool | np.bool_)
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


def setting(default: Any, declared: str | Parameter, *, kw_only: Any = MISSING, **rules: Any) -> Any:
    """A field that declares a parameter: its default, what it means, and rules of `Parameter`. In place of
    the text another declaration may stand, of which the rules change some parts.

    >>> @dataclass
    ... class Model:
    ...     rows: int = setting(1000, "Rows of the table.", at_least=1)
    >>> parameters_of(Model)[0].rule(), Model(rows=3)
    ('an integer of at least 1', Model(rows=3))
    """
    if isinstance(declared, str):
        declared = Parameter(help=declared)
    return field(default=default, kw_only=kw_only, metadata={"parameter": replace(declared, **rules)})


def required(declared: str | Parameter, **rules: Any) -> Any:
    """A field of a parameter that must be given; otherwise as `setting`."""
    return setting(MISSING, declared, **rules)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(required,))
def request(kind: type[T]) -> type[T]:
    """A class decorator: a frozen dataclass, whose fields are given by name.

    >>> @request
    ... class Square:
    ...     side: float = required("Length.", above=0)
    >>> Square(side=1.0)
    Square(side=1.0)
    """
    return dataclass(frozen=True, slots=True, kw_only=True)(kind)


def _is_finite(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


def _is_kernel(value: object) -> bool:
    return hasattr(value, "exact_sum") and hasattr(value, "parameters")


@cache
def parameters_of(request: Any) -> tuple[Parameter, ...]:
    """The parameters that a dataclass declares, in the order of its fields.

    A field that is itself such a dataclass stands for the parameters of that dataclass.
    """
    found: list[Parameter] = []
    for _, hint, declared in declared_fields_of(request):
        found += parameters_of(hint) if declared is None else [declared]
    return tuple(found)


@cache
def declared_fields_of(request: Any) -> tuple[tuple[str, Any, Parameter | None], ...]:
    """The name of each field that is declared, its type, and its declaration; None for a dataclass, which
    declares its own.
    """
    found: list[tuple[str, Any, Parameter | None]] = []
    for each in fields(request):
        try:
            hint = _evaluated(each, request)
        except NameError:
            # What is declared needs a type; that of another field may be imported for type checkers alone.
            if "parameter" in each.metadata:
                raise
            continue
        # Of several types the request that stands in place of the default, such as a kernel that is declared.
        requests = [
            one for one in (hint, *typing.get_args(hint)) if isinstance(one, type) and is_dataclass(one)
        ]
        if requests and each.default is not None:
            found.append((each.name, requests[0], None))
        if (declared := declaration(each, each.name, hint)) is not None:
            found.append((each.name, hint, declared))
    return tuple(found)


def declaration(made: object, name: str, hint: Any) -> Parameter | None:
    """What `setting` declared, with the name, type and default of the field; None for anything else."""
    if not isinstance(made, Field) or "parameter" not in made.metadata:
        return None
    declared = made.metadata["parameter"]
    return replace(_typed(declared, hint), name=declared.name or name, default=made.default)


def _evaluated(each: Field[Any], request: type) -> Any:
    """The type of a field, in the module of the class that declares it."""
    owner = next(kind for kind in request.__mro__ if each.name in vars(kind).get("__annotations__", ()))
    known = vars(sys.modules[owner.__module__])
    return eval(each.type, known) if isinstance(each.type, str) else each.type


def _typed(declared: Parameter, hint: Any) -> Parameter:
    """The declaration with the type that an annotation states."""
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    members = set(typing.get_args(hint)) if union else {hint}
    optional = types.NoneType in members or (declared.optional and hint is Any)
    plain = members - {types.NoneType, Fraction}
    listed = next((each for each in plain if typing.get_origin(each) is tuple), None)
    if listed is not None and not declared.type:
        return replace(_typed(declared, typing.get_args(listed)[0]), optional=optional, several=True)
    order = ((bool, FLAG), (int, INTEGER), (float, NUMBER), (str, TEXT))
    kind = next((kind for type_, kind in order if type_ in plain), ANY)
    return replace(declared, type=declared.type or kind, optional=optional)


def picked(request: type[R], given: Mapping[str, Any]) -> R:
    """The request with those of the arguments of a call that are its fields, by name, and the dataclasses
    that it is made of with theirs.
    """
    kind: Any = request
    made = {place: picked(hint, given) for place, hint, each in declared_fields_of(kind) if each is None}
    return request(**made | {each.name: given[each.name] for each in fields(kind) if each.name in given})


def taking_fields_of(request: Callable[P, R]) -> Callable[[Callable[[R], T]], Callable[P, T]]:
    """A decorator: a function of a request is called with the fields of the request as keywords.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class Square:
    ...     side: float = setting(1.0, "Length.", above=0)
    >>> @taking_fields_of(Square)
    ... def area(request: Square) -> float:
    ...     return request.side**2
    >>> area(side=3.0), str(inspect.signature(area))
    (9.0, '(*, side: float = 1.0) -> float')
    """

    def decorated(function: Callable[[R], T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> T:
            return function(request(*args, **given))

        plain, hints = inspect.signature(request), typing.get_type_hints(request)
        listed = [each.replace(annotation=hints[each.name]) for each in plain.parameters.values()]
        made = plain.replace(parameters=listed, return_annotation=typing.get_type_hints(function)["return"])
        call.__signature__ = made  # type: ignore[attr-defined]
        return call

    return decorated


def build(
    request: type[R], values: Mapping[str, Any], read: Callable[[Parameter, Any, Mapping[str, Any]], Any]
) -> R:
    """The request with values by the names of parameters; a field whose value is None keeps its default.

    ``read`` makes the value of a field from the parameter, what a surface has for it, and the dataclasses
    that the request is made of, which are built first.
    """
    kind: Any = request
    declared = declared_fields_of(kind)
    found = {place: build(hint, values, read) for place, hint, each in declared if each is None}
    inner = dict(found)
    for place, _, each in declared:
        if each is not None and values.get(each.name) is not None:
            found[place] = read(each, values[each.name], inner)
    return request(**found)


def check_fields(request: object) -> None:
    """Refuse a field that its declaration does not allow.

    Raises
    ------
    UsageError
        naming the parameter, what it must be, and what was given.
    """
    kind: Any = type(request)
    for place, _, declared in declared_fields_of(kind):
        if declared is not None and getattr(request, place) is not declared.default:
            declared.check(getattr(request, place), of_model=False)


C = TypeVar("C", bound=Callable[..., Any])


def shows_keywords(keywords: type[Mapping[str, Any]], *requests: Any, **defaults: object) -> Callable[[C], C]:
    """Makes ``help()`` of a function list the names in the typed dictionary that its ``**keywords`` are, with
    these defaults, those of the fields of requests, or None.

    >>> class Seeded(typing.TypedDict, total=False):
    ...     seed: int
    >>> @shows_keywords(Seeded, seed=0)
    ... def draw(size: int, **keywords: typing.Unpack[Seeded]) -> None: ...
    >>> list(inspect.signature(draw).parameters)
    ['size', 'seed']
    """

    declared = {each.name: each.default for request in requests for each in fields(request)}
    order, known = [*declared], declared | defaults

    def shown(call: C) -> C:
        signature = inspect.signature(call)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=known.get(name))
            for name in sorted(keywords.__annotations__, key=lambda name: [*order, name].index(name))
        ]
        vars(call)["__signature__"] = signature.replace(parameters=[*own, *more])
        return call

    return shown
