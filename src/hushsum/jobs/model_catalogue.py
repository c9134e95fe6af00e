"""What models there are and what each can be told, for forms; and the values of a form, checked."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from hushsum.errors import UsageError
from hushsum.jobs.exact_model import EXACT
from hushsum.jobs.model_choice import NAMES, ModelChoice, takes_labels, takes_target
from hushsum.jobs.model_claim import claim_beforehand
from hushsum.models.base import MODELS, PARAMETERS_OF_THE_OWNER, PrivateModel
from hushsum.privacy.claim import Claim

DECLARED: Final = frozenset({"epsilon", "delta", "bounds", "classes"}) | PARAMETERS_OF_THE_OWNER
"""Parameters that are no settings: every model has them, or the owner of the records says them elsewhere."""

NUMBER, INTEGER, TEXT, PAIR = "number", "integer", "text", "pair"
MOST_LISTED: Final = 64
_HEAD = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<kind>.+)$")
_MARK = re.compile(r"(?::\w+:)?`+([^`]+)`+")
_WORD = re.compile(r"\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class Setting:
    """One parameter of a model that a person may set.

    ``type`` is ``"number"``, ``"integer"``, ``"text"`` or ``"pair"`` (low and high). Of a text ``choices``
    are all there is; of a number they are words that may stand in its place, such as ``"auto"``. A setting
    that is ``optional`` may be None, and a ``listed`` one a list.
    """

    name: str
    type: str
    default: Any
    optional: bool
    listed: bool
    choices: tuple[str, ...] | None
    help: str

    def check(self, value: object) -> Any:
        """The value, if it is one of this kind.

        Raises
        ------
        UsageError
            if it is not.
        """
        if value is None and self.optional:
            return None
        if isinstance(value, list) and self.listed and 0 < len(value) <= MOST_LISTED:
            return [self._one(each) for each in value]
        return self._one(value)

    def _one(self, value: object) -> Any:
        if self.type == PAIR:
            if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and _rising(value):
                return tuple(value)
        elif isinstance(value, str):
            if value in (self.choices or ((value,) if self.type == TEXT else ())):
                return value
        elif (self.type == NUMBER and _is_number(value)) or (self.type == INTEGER and type(value) is int):
            return value
        raise UsageError(f"{self.name} must be {self._rule()}, got something else; correct it")

    def _rule(self) -> str:
        words = ", ".join(self.choices or ())
        kind = {NUMBER: "a number", INTEGER: "a whole number", PAIR: "[low, high]", TEXT: "a word"}[self.type]
        if not words:
            return kind
        return f"one of {words}" if self.type == TEXT else f"{kind} or {words}"


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A model as a form shows it. ``learns`` is ``"label"``, ``"number"`` or None for one without a
    target; ``relation`` is that of its claim with the defaults. ``modes`` are ``"file"`` and, where it has
    it, ``"exact"``.
    """

    name: str
    estimator: str
    summary: str
    learns: str | None
    needs_delta: bool
    relation: str
    modes: tuple[str, ...]
    settings: tuple[Setting, ...]

    def checked(self, given: Mapping[str, object]) -> dict[str, Any]:
        """The settings that were given, each of its kind.

        Raises
        ------
        UsageError
            if there is no such setting, or it is of another kind.
        """
        known = {each.name: each for each in self.settings}
        for name in given:
            if name not in known:
                raise UsageError(
                    f"the {self.name} model has no setting of that name; it has {_listed(known)}"
                )
        return {name: known[name].check(value) for name, value in given.items()}


@cache
def model_kinds() -> tuple[ModelKind, ...]:
    """Every model that there is, in the order of the command line."""
    import hushsum.models  # noqa: F401  # the models make themselves known

    return tuple(_kind(name, MODELS[kind]) for name, kind in NAMES.items() if kind in MODELS)


def model_kind(name: str) -> ModelKind:
    """The model of a name.

    >>> kind = model_kind("kernel-svc")
    >>> kind.learns, kind.needs_delta, kind.relation
    ('label', True, 'replace')
    >>> kind.checked({"bandwidth": 0.5, "kernel": "matern"})
    {'bandwidth': 0.5, 'kernel': 'matern'}

    Raises
    ------
    UsageError
        if there is none.
    """
    for each in model_kinds():
        if each.name == name:
            return each
    raise UsageError(f"model must be one of {', '.join(NAMES)}, got another; choose one")


def _kind(name: str, kind: type[PrivateModel]) -> ModelKind:
    made: Any = kind()
    helps = _documented(kind)
    learns = ("label" if takes_labels(made) else "number") if takes_target(made) else None
    settings = [
        _setting(each, *helps.get(each.name, ("", "")))
        for each in inspect.signature(kind).parameters.values()
        if each.name not in DECLARED
    ]
    return ModelKind(
        name=name,
        estimator=kind.__name__,
        summary=(inspect.getdoc(kind) or "").splitlines()[0],
        learns=learns,
        needs_delta=_claimed(name, learns, delta=None) is None,
        relation=str(getattr(_claimed(name, learns, delta=1e-6), "relation", "")),
        modes=("file", "exact") if name in EXACT else ("file",),
        settings=tuple(settings),
    )


def _claimed(name: str, learns: str | None, *, delta: float | None) -> Claim | None:
    """The claim with the defaults; None if there is none for this δ."""
    try:
        return claim_beforehand(
            ModelChoice(name, {"delta": delta}),
            columns=["x"],
            target=None if learns is None else "y",
            classes=["no", "yes"] if learns == "label" else None,
        )
    except UsageError:
        return None


def _setting(parameter: inspect.Parameter, kind: str, help: str) -> Setting:
    hint, default = str(parameter.annotation), parameter.default
    words = tuple(_WORD.findall(kind)) or ((default,) if default == "auto" else ())
    type_ = PAIR if "tuple" in hint else NUMBER if "float" in hint else INTEGER if "int" in hint else TEXT
    return Setting(
        name=parameter.name,
        type=type_,
        default=list(default) if isinstance(default, tuple) else default,
        optional=default is None,
        listed="Sequence" in hint,
        choices=words or None,
        help=help,
    )


def _documented(kind: type[PrivateModel]) -> dict[str, tuple[str, str]]:
    """What the docstring says of each parameter: its kind, and its meaning on one line."""
    text = inspect.getdoc(kind) or ""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found: dict[str, tuple[str, list[str]]] = {}
    names: list[str] = []
    for line in section.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            names = head["names"].split(", ")
            found |= {name: (head["kind"], []) for name in names}
        elif line.startswith("    "):
            for name in names:
                found[name][1].append(line.strip())
        else:
            names = []
    return {name: (kind, _MARK.sub(r"\1", " ".join(lines))) for name, (kind, lines) in found.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _rising(pair: list[Any]) -> bool:
    return bool(pair[0] < pair[1])


def _listed(known: Mapping[str, Setting]) -> str:
    return ", ".join(known) or "none"
