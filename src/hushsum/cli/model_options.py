"""The options of ``hushsum fit`` that belong to one model, made from the model's own declarations."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushsum.cli import option_values
from hushsum.cli.error_wording import Command
from hushsum.errors import UsageError, shown

if TYPE_CHECKING:
    from hushsum.declaration import Parameter

_GIVEN = "hushsum.model_options"


class FitCommand(Command):
    """``hushsum fit``: once the model is known, its parameters are options of the command and of its help.

    The models are imported when the command runs, and not before: scikit-learn takes a second to import.
    """

    _declared: tuple[Parameter, ...] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Look for the model among the arguments first."""
        from hushsum.declaration import ANY
        from hushsum.operations import model_kind, model_names

        names = model_names()
        model = next((each for each in args if each in names), None)
        settings = () if model is None else model_kind(model).settings
        self._declared = tuple(each for each in settings if each.type != ANY)
        self.epilog = f"Models: {', '.join(names)}. Each has options of its own: hushsum fit MODEL --help"
        ctx.meta[_GIVEN] = {}
        found: list[str] = super().parse_args(ctx, args)
        return found

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of every model, and those of the one that is named."""
        shared = super().get_params(ctx)
        return [*shared[:-1], *_options(self._declared), shared[-1]]


def option_name(each: Parameter) -> str:
    """What the command line calls a parameter.

    >>> from hushsum.models import TARGET_BOUNDS
    >>> option_name(TARGET_BOUNDS)
    '--target-bounds'
    """
    return "--" + each.name.replace("_", "-")


def given_parameters(context: Any) -> dict[str, Any]:
    """The values of the model's own options that were given."""
    return dict(context.meta[_GIVEN])


def _options(declared: Sequence[Parameter]) -> list[Any]:
    """Typer's own options for the parameters: those of a command whose signature is made of them."""

    def own(**_: object) -> None:
        """Never called: its signature alone is used."""

    hints = {f"model_{each.name}": _hint(each) for each in declared}
    own.__annotations__ = hints
    own.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in hints.items()
        ]
    )
    app = typer.Typer(add_completion=False)
    app.command()(own)
    made: Any = typer.main.get_command(app)
    return list(made.params)


def _hint(each: Parameter) -> Any:
    def keep(context: typer.Context, text: str | None) -> None:
        if text is not None:
            context.meta[_GIVEN][each.name] = read_option(each, text)

    rule = each.rule(none=False)
    default = f" Default: {each.default}." if each.default is not None else ""
    option = typer.Option(
        option_name(each),
        callback=keep,
        expose_value=False,
        metavar=_metavar(each),
        help=f"{each.help} {rule[:1].upper()}{rule[1:]}.{default}",
        rich_help_panel="Options of this model",
    )
    return Annotated[str | None, option]


def _metavar(each: Parameter) -> str:
    one = {"number": "NUMBER", "integer": "INTEGER", "pair": "LOW:HIGH"}.get(each.type, "TEXT")
    return f"{one}[,...]" if each.several else one


def read_option(each: Parameter, text: str) -> Any:
    """A parameter as it is typed, checked by its declaration.

    >>> from hushsum.models import PrivateDensity
    >>> bandwidth = next(each for each in PrivateDensity.PARAMETERS if each.name == "bandwidth")
    >>> read_option(bandwidth, "0.1,0.5")
    [0.1, 0.5]

    Raises
    ------
    UsageError
        if it is not what the declaration allows.
    """
    if each.type == "pair":
        pairs = option_values.ranges(text, option_name(each))
        value: Any = tuple(pairs[0]) if pairs is not None and len(pairs) == 1 else text
    else:
        parts = [_number_or_text(part.strip()) for part in text.split(",")]
        value = parts if each.several and len(parts) > 1 else parts[0] if len(parts) == 1 else text
    try:
        each.check(value)
    except UsageError:
        raise UsageError(
            each.name,
            f"must be {each.rule(none=False)}",
            got=shown(value),
            remedy="see the help of the model",
        ) from None
    return value


def _number_or_text(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
