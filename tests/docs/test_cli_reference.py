"""The command line reference shows the help of every command as it is."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from .cli_help import PAGE, commands, generated_page, help_sections, parameters_of

WIDE = {"COLUMNS": "200", "TERMINAL_WIDTH": "200", "NO_COLOR": "1", "TERM": "dumb"}


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert generated_page(text) == text, "run: python -m tests.docs.cli_help"


def test_every_command_has_its_section() -> None:
    assert sorted(help_sections(PAGE.read_text(encoding="utf-8"))) == sorted(commands())


def test_an_outdated_page_is_noticed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    outdated = re.sub(r"^  --epsilon", "  --epsilom", text, flags=re.MULTILINE)
    assert outdated != text
    assert generated_page(outdated) == text


@pytest.mark.parametrize("name", sorted(commands()))
def test_the_terminal_shows_the_same_options(name: str) -> None:
    from hushsum.cli.main import app

    shown = CliRunner().invoke(app, [*name.split(), "--help"], env=WIDE)
    assert shown.exit_code == 0
    options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", shown.output))
    declared = {
        long
        for each in parameters_of(commands()[name])
        for long in each.names
        if long.startswith("--") and not each.hidden
    }
    # The examples in the help of a command use options of that command alone.
    assert options == declared | {"--help"}
