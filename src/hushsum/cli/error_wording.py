"""What the argument parser says, in the same words as everything else."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

from hushsum.errors import HushsumError, Surface

_WRONG_NUMBER: Final = re.compile(r"Invalid value for ([^:]+): .*valid (number|float|int\w*).*")
_LONGEST_SHOWN: Final = 40
_SUGGESTION: Final = re.compile(r"\.? *\(?(Did you mean|Possible options:|Did you mean one of:) *")


_options_of_failed: dict[str, str] = {}


def failed_surface() -> Surface:
    """How an error is spelled on the command line: with the options of the command that raised it."""
    return Surface("command line", dict(_options_of_failed))


class Command(TyperCommand):
    """A command whose help names no type for flags, which take no value."""

    def invoke(self, ctx: Any) -> Any:
        """Run it; an error is spelled with its options."""
        with self._spelling(ctx):
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse its arguments; an error is spelled with its options."""
        with self._spelling(ctx):
            rest: list[str] = super().parse_args(ctx, args)
            return rest

    @contextmanager
    def _spelling(self, ctx: Any) -> Iterator[None]:
        try:
            yield
        except HushsumError:
            _options_of_failed.clear()
            _options_of_failed.update(options_of(self.get_params(ctx)))
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, flags without a placeholder."""
        return _without_placeholders(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands, likewise."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, flags without a placeholder."""
        return _without_placeholders(super().get_params(ctx))


def _without_placeholders(parameters: list[Any]) -> list[Any]:
    for each in parameters:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return parameters


def options_of(parameters: list[Any]) -> dict[str, str]:
    """The long option of every parameter, by the name that the library has for it."""
    found: dict[str, str] = {}
    for each in parameters:
        long = next((option for option in each.opts if option.startswith("--")), None)
        if long is not None:
            found[each.name.removeprefix("model_")] = long
    return found


def help_of(command: Callable[..., None]) -> str:
    """A docstring whose paragraphs are one line each: the terminal's width breaks them, not the source's."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def is_usage_error(error: Exception) -> bool:
    """Whether the argument parser raised it; the class has another home in every other version of Typer."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def shows_help(error: Exception) -> bool:
    """Whether it only says that a command without arguments shows its help."""
    return type(error).__name__ == "NoArgsIsHelpError"


def sentence_of(error: Any) -> str:
    """A usage error in one sentence, with the help to look at.

    >>> sentence_of(type("E", (Exception,), {"format_message": lambda self: "Missing option '--output'."})())
    "missing option '--output'; see hushsum --help"
    """
    text = " ".join(error.format_message().split()).rstrip(".?")
    wrong = _WRONG_NUMBER.fullmatch(text)
    if wrong is not None:
        kind = "an integer" if wrong[2].startswith("int") else "a number"
        text = f"{wrong[1]} must be {kind}, got {_typed(error)}"
    text, suggested = _SUGGESTION.subn(", did you mean ", text)
    text = text.rstrip(")") if suggested else text
    context = getattr(error, "ctx", None)
    command = "hushsum" if context is None else context.command_path
    return f"{text[:1].lower()}{text[1:]}; see {command} --help"


def _typed(error: Any) -> str:
    """What a person typed for the option that is wrong. It may be shown, unless it is so long that it may be
    a file by mistake.
    """
    for option in getattr(getattr(error, "param", None), "opts", ()):
        for place, word in enumerate(sys.argv):
            value = word[len(option) + 1 :] if word.startswith(f"{option}=") else None
            if word == option and place + 1 < len(sys.argv):
                value = sys.argv[place + 1]
            if value is not None and len(value) <= _LONGEST_SHOWN:
                return repr(value)
    return "something else"
