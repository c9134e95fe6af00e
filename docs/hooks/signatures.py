"""Signatures in the reference as Python has them: of requests, and of calls with keywords declared elsewhere.

griffe reads sources. It sees neither the parameters that a decorator makes of declared fields nor the names
in a typed dictionary; there the parameters of Python's own signature take the place of those it found.
"""

from __future__ import annotations

import inspect
import typing
from enum import Enum
from importlib import import_module
from typing import Any

import griffe


def signature_of(place: griffe.Object) -> inspect.Signature | None:
    """The signature of what a place in the sources defines, with the names of its typed keywords."""
    module = import_module(place.module.path)
    found: Any = module
    for name in place.path.removeprefix(f"{place.module.path}.").split("."):
        found = getattr(found, name, None)
    if found is None or not callable(found):
        return None
    signature = inspect.signature(found)
    parameters = []
    for each in signature.parameters.values():
        hint = each.annotation if each.kind is each.VAR_KEYWORD else None
        if isinstance(hint, str) and "Unpack" in hint:
            # That annotation alone: others may name types that only type checkers import.
            hint = eval(hint, vars(module))
        if typing.get_origin(hint) is typing.Unpack:
            names = typing.get_args(hint)[0].__annotations__
            parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
        else:
            parameters.append(each)
    return signature.replace(parameters=parameters)


def parameters_of(signature: inspect.Signature) -> griffe.Parameters:
    """The same parameters for griffe; their types stand in docstrings."""
    return griffe.Parameters(
        *(
            griffe.Parameter(
                each.name,
                kind=griffe.ParameterKind(each.kind.description),
                default=None if each.default is each.empty else _shown(each.default),
            )
            for each in signature.parameters.values()
        )
    )


def _shown(default: object) -> str:
    """A default as one would write it."""
    text = repr(default.value if isinstance(default, Enum) else default)
    return "..." if text.startswith("<") else text


class Signatures(griffe.Extension):
    """Replaces the parameters of calls and requests that the sources do not spell out."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """A call whose keywords are declared elsewhere, unless its docstring describes them as a whole."""
        described = func.docstring is not None and "**keywords" in func.docstring.value
        declared = any("fields" in str(each.value) for each in func.decorators)
        if declared or any(each.kind is griffe.ParameterKind.var_keyword for each in func.parameters):
            signature = None if described else signature_of(func)
            if signature is not None:
                func.parameters = parameters_of(signature)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """A request, whose constructor takes its fields."""
        if any("request" in str(each.value) for each in cls.decorators):
            signature = signature_of(cls)
            if signature is not None:
                cls.set_member("__init__", griffe.Function("__init__", parameters=parameters_of(signature)))
