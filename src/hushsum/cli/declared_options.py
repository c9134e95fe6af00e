"""The options of commands, made from the requests that they build.

A command is a function whose parameters may be requests: dataclasses whose fields are declared parameters
(`hushsum.declaration`). Typer sees an option for each of those in their place, and the function is called
with the requests built.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, is_dataclass, replace
from types import NoneType
from typing import Annotated, Any, Final, TypeVar

import typer

from hushsum.declaration import (
    BOUNDS_TYPE,
    FLAG,
    INTEGER,
    NUMBER,
    PAIR,
    Parameter,
    build,
    check_fields,
    declaration,
    parameters_of,
)
from hushsum.errors import UsageError, shown

from . import options
from .parser import HELP_ALL, Command, Group, help_of

F = TypeVar("F", bound=Callable[..., None])


class Without:
    """In an annotation: the request is built without these parameters, which keep their defaults."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)


class Taking(Without):
    """In an annotation: of the parameters that ``kind`` declares, which is the request or a part of it, the
    command has these; the others keep their defaults, also those that are added to it one day.
    """

    def __init__(self, kind: Any, *names: str) -> None:
        declared = {each.name for each in parameters_of(kind)}
        assert declared.issuperset(names), f"{kind.__name__} does not declare all of {names}"
        super().__init__(*declared.difference(names))


@dataclass(frozen=True, slots=True)
class Reworded:
    """An annotation of a request: the command's help texts for some parameters, the parameters it requires,
    and whether its short help lists all of them.
    """

    help: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    listed: bool = False


_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY
# What may be typed in place of the name of an option.
_SHORT: Final = {"output": ("-o",)}


def _show_all(context: typer.Context, requested: bool) -> None:
    if requested and not context.resilient_parsing:
        context.meta[HELP_ALL] = True
        typer.echo(context.get_help(), color=context.color)
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, expose_value=False, callback=_show_all, help="Show all options and exit."
    ),
]


def with_declared_options(command: F) -> F:
    """The command with options in place of its requests, and of its own declared parameters."""
    signature = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)
    requests = {name: request for name, hint in hints.items() if (request := _Request.of(hint)) is not None}
    own: dict[str, Parameter] = {}
    parameters: list[inspect.Parameter] = []
    grouped = False
    for each in signature.parameters.values():
        if each.name not in requests:
            stated = declaration(each.default, each.name, hints[each.name])
            if stated is None:
                parameters.append(each.replace(annotation=hints[each.name], kind=_KEYWORD))
            else:
                own[each.name] = stated
                parameters.append(_option(stated))
            continue
        declared = requests[each.name].parameters()
        grouped |= any(one.group for one in declared)
        parameters += map(_option, declared)
    if grouped:
        parameters.append(inspect.Parameter("help_all", _KEYWORD, default=False, annotation=HelpAll))

    doubled = {each.name for each in parameters if [one.name for one in parameters].count(each.name) > 1}
    assert not doubled, f"two options of {command.__name__} are called {doubled}"

    def run(**values: Any) -> None:
        """Build the requests, and run the command."""
        built = {name: request.built(values) for name, request in requests.items()}
        rest = {name: values[name] for name in signature.parameters if name not in requests}
        for name, declared in own.items():
            if rest[name] is not None:
                rest[name] = _read(declared, rest[name], {})
                declared.check(rest[name], of_model=False)
        command(**rest, **built)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    return typing.cast(F, run)


def add_command(app: typer.Typer, command: Callable[..., None], kind: type[Command] = Command) -> None:
    """Make a command of a function, whose docstring is its help."""
    app.command(cls=kind, help=help_of(command))(with_declared_options(command))


def command_group(name: str, help: str, *commands: Callable[..., None]) -> typer.Typer:
    """Commands under one name, in the order in which help lists them."""
    made = typer.Typer(name=name, cls=Group, help=help, no_args_is_help=True)
    for command in commands:
        add_command(made, command)
    return made


@dataclass(frozen=True, slots=True)
class _Request:
    """A request as a parameter of a command: its class, and what an annotation says of it."""

    kind: Any
    left_out: frozenset[str]
    changed: Reworded

    @classmethod
    def of(cls, hint: Any) -> _Request | None:
        """The request that an annotation names; None if it names no request."""
        kind, *said = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
        left_out = {name for each in said if isinstance(each, Without) for name in each.names}
        changed = next((each for each in said if isinstance(each, Reworded)), Reworded())
        return cls(kind, frozenset(left_out), changed) if is_dataclass(kind) else None

    def parameters(self) -> list[Parameter]:
        """The parameters that are options of the command, with the command's help texts.

        A required parameter has no default.
        """
        changed = self.changed
        return [
            replace(
                each,
                help=changed.help.get(each.name, each.help),
                default=MISSING if each.name in changed.required else each.default,
                group="" if changed.listed and each.group else each.group,
            )
            for each in parameters_of(self.kind)
            if each.name not in self.left_out
        ]

    def built(self, values: Mapping[str, Any]) -> Any:
        """The request with the values of options."""
        given = {name: value for name, value in values.items() if name not in self.left_out}
        made = build(self.kind, given, _read)
        check_fields(made)
        return made


def given_names(context: typer.Context) -> set[str]:
    """The parameters that were given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _read(parameter: Parameter, value: Any, inner: Mapping[str, Any]) -> Any:
    """Convert a text that Typer read to the type that the parameter declares.

    Ranges may contain dates, in the declared format of the cells.
    """
    if not isinstance(value, str):
        return value
    if parameter.type in (BOUNDS_TYPE, PAIR):
        dates = next((each.dates for each in inner.values() if hasattr(each, "dates")), None)
        return options.box(value, parameter.name, dates)
    if parameter.several:
        kind = {INTEGER: options.integers, NUMBER: options.numbers}
        return kind.get(parameter.type, options.names)(value, parameter.name)
    if parameter.type in (INTEGER, NUMBER) and value not in parameter.words():
        try:
            return int(value) if parameter.type == INTEGER else float(value)
        except ValueError:
            rule = f"must be {parameter.rule(none=False)}"
            raise UsageError(parameter.name, rule, got=shown(value)) from None
    return value


def option_name(parameter: Parameter) -> str:
    """What the command line calls a parameter.

    >>> option_name(Parameter("target_bounds"))
    '--target-bounds'
    """
    return "--" + parameter.name.replace("_", "-")


def _option(parameter: Parameter) -> inspect.Parameter:
    """The parameter of a function, as Typer reads it."""
    plain: Any = {FLAG: bool, INTEGER: int, NUMBER: float}.get(parameter.type, str)
    if parameter.several or parameter.choices:
        plain = str
    required = parameter.default is MISSING
    default = inspect.Parameter.empty if required else _default(parameter)
    if default is None:
        plain |= None
    hint = typer.Option(
        option_name(parameter),
        *_SHORT.get(parameter.name, ()),
        help=parameter.help,
        metavar=parameter.metavar,
        hidden=parameter.group is None,
        rich_help_panel=parameter.group or None,
        autocompletion=_completions(parameter),
    )
    annotation = Annotated[plain, hint]
    return inspect.Parameter(parameter.name, _KEYWORD, default=default, annotation=annotation)


def _default(parameter: Parameter) -> Any:
    """What Typer shows and passes where an option is not given; texts, as they are typed."""
    default = parameter.default
    if isinstance(default, tuple | NoneType):
        return None
    return default if isinstance(default, bool | int | float) else str(default)


def _completions(parameter: Parameter) -> Callable[[str], list[str]] | None:
    words = parameter.words if parameter.choices else parameter.suggestions
    return None if words is None else options.completing(words)
