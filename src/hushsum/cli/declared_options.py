"""The options of commands, made from the requests that they build.

A command is a function whose parameters may be requests: dataclasses whose fields are declared parameters
(`hushsum.declaration`). Typer sees an option for each of those in their place, and the function is called
with the requests built.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, is_dataclass
from types import NoneType
from typing import Annotated, Any, Final, TypeVar

import typer

from hushsum.cli import option_values
from hushsum.cli.error_wording import HELP_ALL
from hushsum.declaration import (
    BOUNDS_TYPE,
    FLAG,
    INTEGER,
    NUMBER,
    PAIR,
    Parameter,
    build,
    check_fields,
    parameters_of,
)
from hushsum.errors import UsageError, shown

F = TypeVar("F", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Without:
    """In an annotation: the request is built without these parameters, which keep their defaults."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


@dataclass(frozen=True, slots=True)
class Reworded:
    """In an annotation: what this command says of parameters, and their defaults in it."""

    help: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()


_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY


def _show_all(context: typer.Context, requested: bool) -> None:
    if requested and not context.resilient_parsing:
        context.meta[HELP_ALL] = True
        typer.echo(context.get_help(), color=context.color)
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help="Show all options and exit.",
    ),
]


def with_declared_options(command: F) -> F:
    """The command with options in place of its requests."""
    signature = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)
    requests = {name: hint for name, hint in hints.items() if _request_of(hint) is not None}
    if not requests:
        return command
    parameters: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if each.name in requests:
            parameters += _options_of(requests[each.name])
        else:
            parameters.append(each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY))

    if any(each.group for hint in requests.values() for each in parameters_of(_request_of(hint))):
        parameters.append(inspect.Parameter("help_all", _KEYWORD, default=False, annotation=HelpAll))

    doubled = {each.name for each in parameters if [one.name for one in parameters].count(each.name) > 1}
    assert not doubled, f"two options of {command.__name__} are called {doubled}"

    def run(**values: Any) -> None:
        """Build the requests, and run the command."""
        built = {name: _built(hint, values) for name, hint in requests.items()}
        for each in built.values():
            check_fields(each)
        rest = {
            name: value
            for name, value in values.items()
            if name in signature.parameters and name not in requests
        }
        command(**rest, **built)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    return typing.cast(F, run)


def _built(hint: Any, values: Mapping[str, Any]) -> Any:
    left_out = _left_out(hint)
    return build(
        _request_of(hint), {name: each for name, each in values.items() if name not in left_out}, _read
    )


def _left_out(hint: Any) -> set[str]:
    return {name for each in _metadata(hint) if isinstance(each, Without) for name in each.names}


def given_names(context: typer.Context) -> set[str]:
    """The parameters that were given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _read(parameter: Parameter, value: Any, inner: Mapping[str, Any]) -> Any:
    """What Typer read as text, as the parameter declares it. Ranges may have dates in them, as the format of
    the cells declares.
    """
    if not isinstance(value, str):
        return value
    if parameter.type in (BOUNDS_TYPE, PAIR):
        dates = next((each.dates for each in inner.values() if hasattr(each, "dates")), None)
        return option_values.box(value, parameter.name, dates)
    if parameter.several:
        kind = {INTEGER: option_values.integers, NUMBER: option_values.numbers}
        return kind.get(parameter.type, option_values.names)(value, parameter.name)
    if parameter.type in (INTEGER, NUMBER) and value not in parameter.words():
        try:
            return int(value) if parameter.type == INTEGER else float(value)
        except ValueError:
            raise UsageError(
                parameter.name, f"must be {parameter.rule(none=False)}", got=shown(value)
            ) from None
    return value


def _options_of(hint: Any) -> list[inspect.Parameter]:
    without = _left_out(hint)
    changed = next((each for each in _metadata(hint) if isinstance(each, Reworded)), Reworded())
    found = []
    for each in parameters_of(_request_of(hint)):
        if each.name not in without:
            required = each.default is MISSING or each.name in changed.required
            annotation = option(each, changed.help.get(each.name), required=required)
            default = inspect.Parameter.empty if required else _default(each)
            made = inspect.Parameter(each.name, _KEYWORD, default=default, annotation=annotation)
            found.append(made)
    return found


def option(parameter: Parameter, help: str | None = None, *, required: bool = False) -> Any:
    """The annotation of an option, as Typer reads it."""
    plain: Any = {FLAG: bool, INTEGER: int, NUMBER: float}.get(parameter.type, str)
    if parameter.several or parameter.choices:
        plain = str
    if not required and _default(parameter) is None:
        plain |= None
    return Annotated[
        plain,
        typer.Option(
            "--" + parameter.name.replace("_", "-"),
            help=help or parameter.help,
            metavar=parameter.metavar,
            hidden=parameter.group is None,
            rich_help_panel=parameter.group or None,
            autocompletion=_completions(parameter),
        ),
    ]


def _default(parameter: Parameter) -> Any:
    """What Typer shows and passes where an option is not given; texts, as they are typed."""
    default = parameter.default
    if default is MISSING or isinstance(default, tuple | NoneType):
        return None
    return default if isinstance(default, bool | int | float) else str(default)


def _completions(parameter: Parameter) -> Callable[[str], list[str]] | None:
    words = parameter.words if parameter.choices else parameter.suggestions
    return (
        None
        if words is None
        else lambda incomplete: [each for each in words() if each.startswith(incomplete)]
    )


def _metadata(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__metadata__", ())


def _request_of(hint: Any) -> Any:
    """The request that an annotation names, if it names one."""
    plain = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    return plain if is_dataclass(plain) else None
