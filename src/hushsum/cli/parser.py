"""The parser of the command line: classes of commands and groups, the layout of help, and typed numbers.

Errors of the parser are rewritten in the words that the library uses, with the names of the options.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from hushsum.errors import HushsumError, Surface, UsageError

_WRONG_NUMBER: Final = re.compile(r"Invalid value for ([^:]+): .*valid (number|float|int\w*).*")
_INTEGER: Final = re.compile(r"\s*[-+]?\d+(_\d+)*\s*")
_GROUPED: Final = re.compile(r"\s*[-+]?\d{1,3}([.,'’ ]\d{3})+\s*")
_LONGEST_SHOWN: Final = 40
# Set in a context whose help shows every option.
HELP_ALL: Final = "hushsum.help_all"
_SUGGESTION: Final = re.compile(r"\.? *\(?(Did you mean|Possible options:|Did you mean one of:) *")


_options_of_failed: dict[str, str] = {}
# The running command, if it releases and may record that in a ledger.
_spending: list[str] = []


def failed_surface() -> Surface:
    """How an error is spelled on the command line: with the options of the command that raised it."""
    return Surface("command line", dict(_options_of_failed))


def may_have_spent() -> bool:
    """Whether the command that ran makes a release, which may have been debited."""
    return bool(_spending)


class Command(TyperCommand):
    """A command whose help names no type for flags, which take no value."""

    def invoke(self, ctx: Any) -> Any:
        """Run it; an error is spelled with its options."""
        _spending[:] = [self.name or ""] if "idempotency_key" in ctx.params else []
        with self._spelling(ctx):
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse its arguments; an error is spelled with its options."""
        typed = list(args)
        with self._spelling(ctx):
            rest: list[str] = super().parse_args(ctx, args)
            refuse_other_integers(self.get_params(ctx), ctx.params, typed)
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

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """What most people need; with --help-all also the options that have a heading."""
        special = [each for each in self.params if getattr(each, "rich_help_panel", None) is not None]
        hidden = [each for each in special if not getattr(each, "hidden", False)]
        brief = HELP_ALL not in ctx.meta and any(each.name == "help_all" for each in self.params)
        shown: list[Any] = self.params
        epilog = self.epilog
        texts = [(each, each.help) for each in shown if getattr(each, "help", None)]
        for each, text in texts:
            # "[default: 1]" is text, and no markup.
            each.help = escape(text)
        if brief and hidden:
            headings = ", ".join(
                dict.fromkeys(getattr(each, "rich_help_panel", "") for each in hidden)
            ).lower()
            self.params = [each for each in shown if each not in hidden]
            self.epilog = f"{len(hidden)} more options ({headings}): {ctx.command_path} --help-all"
        try:
            super().format_help(ctx, formatter)
        finally:
            self.params, self.epilog = shown, epilog
            for each, text in texts:
                each.help = text


class Group(TyperGroup):
    """A group of commands, whose help names no type for flags either."""

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


def refuse_other_integers(parameters: Sequence[Any], values: Mapping[str, Any], words: Sequence[str]) -> None:
    """Refuse an integer that was not typed as one: a parser may take 6.000, meant as six thousand, for 6.

    Raises
    ------
    UsageError
        in this case.
    """
    for each in parameters:
        value = values.get(each.name)
        text = (
            _typed_value(each.opts, words) if isinstance(value, int) and not isinstance(value, bool) else None
        )
        if text is not None and not _INTEGER.fullmatch(text):
            remedy = _written_plainly(text) or "write it without a decimal sign"
            raise UsageError(each.name, "must be an integer", got=_brief(text), remedy=remedy)


def _written_plainly(text: str) -> str | None:
    """What to type in place of a number with separators of thousands; None for any other text.

    >>> _written_plainly("6.000"), _written_plainly("1,200,000"), _written_plainly("5k")
    ('write it without separators: 6000', 'write it without separators: 1200000', None)
    """
    if not _GROUPED.fullmatch(text) or len(text) > _LONGEST_SHOWN:
        return None
    return f"write it without separators: {re.sub('[^-+0-9]', '', text)}"


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
        typed = _typed_value(getattr(getattr(error, "param", None), "opts", ()), sys.argv)
        text = f"{wrong[1]} must be {kind}, got {'something else' if typed is None else _brief(typed)}"
        remedy = None if typed is None else _written_plainly(typed)
        if typed is not None and kind == "a number" and "," in typed:
            remedy = "write it with a decimal point, and without separators of thousands"
        if remedy is not None:
            return f"{text}; {remedy}"
    text, suggested = _SUGGESTION.subn(", did you mean ", text)
    text = text.rstrip(")") if suggested else text
    context = getattr(error, "ctx", None)
    command = "hushsum" if context is None else context.command_path
    return f"{text[:1].lower()}{text[1:]}; see {command} --help"


def _typed_value(options: Sequence[str], words: Sequence[str]) -> str | None:
    """The text that was typed last for one of these options; None if there is none.

    >>> _typed_value(["--rows", "-r"], ["plan", "--rows=5", "-r", "6.000"])
    '6.000'
    """
    found = None
    for place, word in enumerate(words):
        for option in options:
            if word == option and place + 1 < len(words):
                found = words[place + 1]
            elif word.startswith(f"{option}="):
                found = word[len(option) + 1 :]
            elif len(option) == 2 and option.startswith("-") and word.startswith(option) and word != option:
                found = word[2:]
    return found


def _brief(text: str) -> str:
    """The typed text for a message.

    Long text is not shown, because it may be the content of a file, typed by mistake.
    """
    return repr(text) if len(text) <= _LONGEST_SHOWN else "something else"
