"""The help of every command as plain text, and the reference page that holds it.

``python -m tests.docs.cli_help`` writes the page anew. The text is made from the declarations of the commands
and not from a terminal's rendering of them, which changes with the versions of Typer and Rich.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import typer
from typer.models import ArgumentInfo, CommandInfo, OptionInfo

from .pages import DOCS

PAGE: Final = DOCS / "reference" / "command-line.md"
WIDTH: Final = 100
_KINDS: Final = {"str": "TEXT", "int": "INTEGER", "float": "NUMBER"}
_GENERATED: Final = re.compile(r"(<!-- help: (?P<name>[\w -]+?) -->\n\n)```text\n.*?\n```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or an option as its command declares it."""

    names: tuple[str, ...]
    metavar: str
    help: str
    default: object
    required: bool
    option: bool
    hidden: bool

    @property
    def shown(self) -> str:
        """How it is written on a command line."""
        return " ".join(filter(None, [", ".join(sorted(self.names, key=len)), self.metavar]))

    @property
    def description(self) -> str:
        """Its help, and what holds if it is left out."""
        if self.required:
            return f"{self.help} [required]"
        silent = self.default is None or isinstance(self.default, bool)
        return self.help if silent else f"{self.help} [default: {self.default}]"


def commands() -> dict[str, Callable[..., None]]:
    """Every command by its name; those of a group by both names."""
    from hushsum.cli.main import app

    found = _commands_of(app.registered_commands, "")
    for group in app.registered_groups:
        assert group.typer_instance is not None
        prefix = f"{group.typer_instance.info.name} "
        found |= _commands_of(group.typer_instance.registered_commands, prefix)
    return found


def _commands_of(registered: list[CommandInfo], prefix: str) -> dict[str, Callable[..., None]]:
    callbacks = [each.callback for each in registered]
    return {prefix + each.__name__.replace("_", "-"): each for each in callbacks if each is not None}


def parameters_of(command: Callable[..., None]) -> list[Parameter]:
    """Its arguments and options, in order."""
    hints = typing.get_type_hints(command, include_extras=True)
    signature = inspect.signature(command).parameters
    return [
        _parameter(name, hints[name], each.default)
        for name, each in signature.items()
        if hints[name] is not typer.Context
    ]


def _parameter(name: str, hint: Any, default: object) -> Parameter:
    kind, declared = typing.get_args(hint)[:2]
    assert isinstance(declared, OptionInfo | ArgumentInfo), name
    option = isinstance(declared, OptionInfo)
    flag = bool in (kind, *typing.get_args(kind))
    word = next((word for type_name, word in _KINDS.items() if type_name in str(kind)), "TEXT")
    return Parameter(
        # Inside Annotated, Typer takes the first name for the default, until it builds the command.
        names=tuple(
            each for each in (declared.default, *(declared.param_decls or ())) if isinstance(each, str)
        ),
        metavar="" if flag else declared.metavar or (word if option else name.upper()),
        help=" ".join((declared.help or "").split()),
        default=None if default is inspect.Parameter.empty else default,
        required=default is inspect.Parameter.empty,
        option=option,
        hidden=bool(declared.hidden),
    )


def plain_help(command: Callable[..., None], name: str) -> str:
    """Usage, description, arguments and options of a command."""
    parameters = [each for each in parameters_of(command) if not each.hidden]
    arguments = [each for each in parameters if not each.option]
    options = [each for each in parameters if each.option]
    lines = [" ".join(["Usage: hushsum", name, "[OPTIONS]", *(each.shown for each in arguments)]), ""]
    for paragraph in inspect.cleandoc(command.__doc__ or "").split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), WIDTH), ""]
    for title, group in (("Arguments", arguments), ("Options", options)):
        if group:
            lines += [f"{title}:", *_table(group), ""]
    return "\n".join(lines).rstrip()


def generated_page(text: str) -> str:
    """The page with every help block replaced by the current one."""
    known = commands()

    def block(match: re.Match[str]) -> str:
        return f"{match[1]}```text\n{plain_help(known[match['name']], match['name'])}\n```"

    return _GENERATED.sub(block, text)


def help_sections(text: str) -> list[str]:
    """The commands whose help stands on the page, in order."""
    return [match["name"] for match in _GENERATED.finditer(text)]


def _table(parameters: list[Parameter]) -> list[str]:
    column = max(len(each.shown) for each in parameters) + 4
    lines: list[str] = []
    for each in parameters:
        words = textwrap.wrap(each.description, WIDTH - column)
        lines.append(f"  {each.shown}".ljust(column) + (words[0] if words else ""))
        lines += [" " * column + line for line in words[1:]]
    return [line.rstrip() for line in lines]


if __name__ == "__main__":
    PAGE.write_text(generated_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
