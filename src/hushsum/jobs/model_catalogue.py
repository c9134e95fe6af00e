"""The models there are, by the names of the command line and the service, and what each can be given."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from hushsum.errors import UsageError
from hushsum.models.base import MODELS, PrivateModel
from hushsum.models.parameters import FROM_PUBLIC, OWNER, PAIR, SETTING, Parameter

EXACT: Final = {"density": 1 << 17, "gaussian-process": 4000, "kernel-svc": 4000}
"""The models that have exact mode, and the most records of each: the last two solve with a full matrix."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model's name and the parameters given for it; the others stay at the model's defaults.

    ``public`` are public rows: they decide what may be left to them and is not given.
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    public: Any = field(default=None, repr=False, compare=False)

    def build(self) -> PrivateModel:
        """The estimator, not yet fitted; its parameters are checked.

        Raises
        ------
        UsageError
            if there is no such model, or it has no such parameter.
        """
        kind = model_class(self.name)
        allowed = [
            each.name for each in kind.PARAMETERS if each.group != OWNER or each.name == "random_state"
        ]
        for name in self.parameters:
            if name not in allowed:
                raise UsageError(
                    parameter=name,
                    rule=f"must be a parameter of the {self.name} model",
                    remedy=f"it has {', '.join(sorted(allowed))}",
                )
        given = dict.fromkeys(self.left_to_public(), FROM_PUBLIC)
        rows = {} if self.public is None else {"public": self.public}
        model = kind(**given, **rows, **self.parameters)
        model.check_parameters()
        return model

    def left_to_public(self) -> list[str]:
        """The parameters that public rows decide because they are not given. A radius is in units of the
        bounds, so where one is given these keep their default.

        >>> ModelChoice("outliers", {"bandwidth": 0.5}, public=[[0.0], [1.0]]).left_to_public()
        ['bounds']

        Raises
        ------
        UsageError
            if the model takes no public rows.
        """
        if self.public is None:
            return []
        declared = model_class(self.name).PARAMETERS
        if all(each.name != "public" for each in declared):
            raise UsageError(
                parameter="public", rule=f"must be left out: the {self.name} model takes no public rows"
            )
        left = [each.name for each in declared if each.from_public and each.name not in self.parameters]
        return [] if self.parameters.get("radius") is not None else left

    def assumed(self) -> list[str]:
        """Parameters of the records and of the claim that were not given and whose default is seldom meant:
        ranges that records are clipped to, δ, and inputs that are taken to be public.
        """
        defaults = inspect.signature(model_class(self.name)).parameters
        seldom = [each for each in ("bounds", "target_bounds", "delta", "inputs") if each in defaults]
        known = {*self.parameters, *self.left_to_public()}
        return [each for each in seldom if each not in known and defaults[each].default]


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A model as a form shows it. ``learns`` is ``"label"``, ``"number"`` or None for one without a
    target; ``takes_public`` says whether public rows may decide some parameters; ``relation`` is that of its
    claim with the defaults. ``modes`` are ``"file"`` and, where it has
    it, ``"exact"``.
    """

    name: str
    estimator: str
    summary: str
    learns: str | None
    needs_delta: bool
    takes_public: bool
    relation: str
    modes: tuple[str, ...]
    settings: tuple[Parameter, ...]

    def checked(self, given: Mapping[str, object]) -> dict[str, Any]:
        """The settings that were given, each checked by its declaration.

        Raises
        ------
        UsageError
            if there is no such setting, or it is not what its declaration allows.
        """
        known = {each.name: each for each in self.settings}
        for name in given:
            if name not in known:
                raise UsageError(
                    parameter="settings",
                    rule=f"must be settings of the {self.name} model",
                    got="another",
                    remedy=f"it has {', '.join(known) or 'none'}",
                )
        return {name: known[name].from_form(value) for name, value in given.items()}


def model_names() -> list[str]:
    """The models by the names of the command line, in the order of their classes' names."""
    return [kind.COMMAND for kind in _classes().values()]


def model_class(name: str) -> type[PrivateModel]:
    """The estimator of a name.

    >>> model_class("modes").__name__
    'PrivateModes'

    Raises
    ------
    UsageError
        if there is none.
    """
    found = _classes().get(name)
    if found is None:
        raise UsageError(
            parameter="model",
            rule=f"must be one of {', '.join(_classes())}",
            got="another",
            remedy="choose one",
        )
    return found


def _classes() -> dict[str, type[PrivateModel]]:
    import hushsum.models  # noqa: F401  # importing them registers them

    return {kind.COMMAND: kind for _, kind in sorted(MODELS.items()) if kind.COMMAND}


@cache
def model_kinds() -> tuple[ModelKind, ...]:
    """Every model that there is."""
    return tuple(_kind(name, kind) for name, kind in _classes().items())


def model_kind(name: str) -> ModelKind:
    """The model of a name, as a form shows it.

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
    model_class(name)
    return next(each for each in model_kinds() if each.name == name)


def takes_target(model: PrivateModel) -> bool:
    """Whether the model learns a column from the others."""
    return bool(model.__sklearn_tags__().target_tags.required)


def takes_labels(model: PrivateModel) -> bool:
    """Whether its target is a label, and not a number."""
    return bool(model.__sklearn_tags__().estimator_type == "classifier")


def _kind(name: str, kind: type[PrivateModel]) -> ModelKind:
    made: Any = kind(delta=1e-6)
    return ModelKind(
        name=name,
        estimator=kind.__name__,
        summary=(inspect.getdoc(kind) or "").splitlines()[0],
        learns=("label" if takes_labels(made) else "number") if takes_target(made) else None,
        needs_delta=kind.NEEDS_DELTA,
        takes_public=any(each.name == "public" for each in kind.PARAMETERS),
        relation=str(made.claim(1).relation),
        modes=("file", "exact") if name in EXACT else ("file",),
        settings=tuple(each for each in kind.PARAMETERS if each.group == SETTING),
    )


def setting_as_json(each: Parameter) -> dict[str, Any]:
    """A parameter for a form."""
    return {
        "name": each.name,
        "type": each.type,
        "default": list(each.default) if each.type == PAIR else each.default,
        "optional": each.optional,
        "listed": each.several,
        "choices": list(each.choices) or None,
        "rule": each.rule(),
        "help": each.help,
    }
