"""The text of errors: phrases whose parts are spelled as Python, a command line or the service does."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Surface:
    """Where an error is shown, which decides how parameters are spelled.

    ``options`` are the options of the command that runs, by the name of the parameter; on a command line a
    parameter without an option keeps its name.

    Examples
    --------
    >>> COMMAND_LINE = Surface("command line", {"allow_large_delta": "--allow-large-delta"})
    >>> [each.parameter("allow_large_delta") for each in (PYTHON, COMMAND_LINE, SERVICE)]
    ['allow_large_delta', '--allow-large-delta', 'allow_large_delta']
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    def parameter(self, name: str) -> str:
        """The name of a parameter."""
        return self.options.get(name, name)


PYTHON: Final = Surface("python")
SERVICE: Final = Surface("service")


@dataclass(frozen=True, slots=True)
class Parameter:
    """The name of a parameter inside a rule or a remedy."""

    name: str

    def words(self, surface: Surface) -> str:
        """The name of the argument, option or JSON field."""
        return surface.parameter(self.name)

    def as_json(self) -> dict[str, Any]:
        """Its fields, as a problem document has them."""
        return {"parameter": self.name}


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter with a value to give, inside a rule or a remedy; ``...`` is any value.

    >>> Argument("delta", 1e-6).words(PYTHON), Argument("delta", 0.001).words(SERVICE)
    ('delta=1e-6', '"delta": 0.001')
    """

    name: str
    value: bool | float | str | EllipsisType = ...

    def words(self, surface: Surface) -> str:
        """The argument, option or JSON field."""
        name = surface.parameter(self.name)
        if surface.name == PYTHON.name:
            return f"{name}=..." if self.value is ... else f"{name}={_written(self.value)}"
        if self.value is ... or self.value is True:
            return name
        if surface.name == SERVICE.name:
            return f"{json.dumps(name)}: {json.dumps(self.value)}"
        return f"{name} {self.value if isinstance(self.value, str) else _written(self.value)}"

    def as_json(self) -> dict[str, Any]:
        """Its fields, as a problem document has them."""
        return {"argument": self.name} | ({} if self.value is ... else {"value": self.value})


def _written(value: bool | float | str) -> str:
    """A value as people write it: 1e-6, not 1e-06."""
    return re.sub(r"e([+-])0+(?=[0-9])", r"e\1", repr(value)) if isinstance(value, float) else repr(value)


@dataclass(frozen=True, slots=True)
class PerSurface:
    """A phrase that differs by more than the spelling of a parameter, such as the call or command to use.

    >>> PerSurface("read it with hushsum.load", "query it with: hushsum query", "query it").words(SERVICE)
    'query it'
    """

    python: str
    command_line: str
    service: str

    def words(self, surface: Surface) -> str:
        """The phrase of this surface."""
        known = {PYTHON.name: self.python, SERVICE.name: self.service}
        return known.get(surface.name, self.command_line)

    def as_json(self) -> dict[str, Any]:
        """Its fields, as a problem document has them."""
        return {"python": self.python, "command_line": self.command_line, "service": self.service}


@dataclass(frozen=True, slots=True)
class FilePath:
    """The path of a file or folder. The service shows names alone, not the paths of its own machine.

    >>> FilePath("/srv/a.tally").words(PYTHON), FilePath("/srv/a.tally").words(SERVICE)
    ('/srv/a.tally', 'the file')
    """

    path: str | os.PathLike[str]
    service: str = "the file"
    quoted: bool = False

    def words(self, surface: Surface) -> str:
        """The path, or what the service calls it."""
        path = os.fspath(self.path)
        if surface.name == SERVICE.name and os.sep in path:
            return self.service
        return repr(path) if self.quoted else path

    def as_json(self) -> str:
        """What the service calls it: a problem document leaves the machine."""
        return self.words(SERVICE)


Part = str | Parameter | Argument | PerSurface | FilePath
Words = Part | tuple[Part, ...]
"""A phrase: text, and parts that each surface spells in its own way."""


def render(words: Words, surface: Surface) -> str:
    """A phrase as a surface shows it.

    >>> render(("declare ", Argument("population"), ", or a smaller delta"), PYTHON)
    'declare population=..., or a smaller delta'
    """
    return "".join(each if isinstance(each, str) else each.words(surface) for each in parts_of(words))


def parts_of(words: Words) -> tuple[Part, ...]:
    """A phrase as its parts."""
    return words if isinstance(words, tuple) else (words,)


def words_as_json(words: Words) -> Any:
    """A phrase in a problem document; `words_from_json` reads it."""
    if isinstance(words, tuple):
        return [words_as_json(each) for each in words]
    return words if isinstance(words, str) else words.as_json()


def words_from_json(found: Any) -> Words:
    """The phrase in a problem document."""
    if isinstance(found, list):
        return tuple(_part_from_json(each) for each in found)
    return _part_from_json(found)


def _part_from_json(found: Any) -> Part:
    if isinstance(found, Mapping) and "argument" in found:
        return Argument(str(found["argument"]), found.get("value", ...))
    if isinstance(found, Mapping) and "parameter" in found:
        return Parameter(str(found["parameter"]))
    if isinstance(found, Mapping) and "file" in found:
        return FilePath(str(found["file"]), str(found["service"]), bool(found["quoted"]))
    if isinstance(found, Mapping):
        names = ("python", "command_line", "service")
        return PerSurface(*(str(found.get(each, "")) for each in names))
    return str(found)
