"""Everything public is documented somewhere a reader would look."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.hooks import reference
from docs.hooks.reference import commands

import hushsum as hs
from hushsum import errors
from hushsum.operations.models import model_class, model_names

from .pages import DOCS, ROOT, all_pages, blocks_of, page_id

PAGES = {page: page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("*.md"))}
COMMAND_LINE = PAGES[DOCS / "reference" / "command-line.md"]
GENERATED = {"model-parameters.md", "openapi.json"}
"""Pages of the reference that exist on the site only."""


def examples(*languages: str) -> Iterator[str]:
    for page in all_pages():
        for block in blocks_of(page):
            if block.language in languages and block.not_run is None:
                yield block.code


def test_every_public_name_is_in_the_reference() -> None:
    def is_there(name: str) -> bool:
        return any(
            f"`hs.{name}`" in text or re.search(rf"^::: hushsum(\.\w+)*\.{name}$", text, re.MULTILINE)
            for text in PAGES.values()
        )

    assert [name for name in hs.__all__ if not is_there(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_what_a_page_has_generated_can_be_generated(page: Path) -> None:
    written = reference.on_page_markdown(PAGES[page])
    assert not re.search(r"<!-- (help|errors|contents|packages)\b", written)


def test_every_error_is_in_the_tree_that_the_table_shows() -> None:
    classes = {each for _, each in inspect.getmembers(errors, inspect.isclass)}
    assert {each for each in classes if issubclass(each, errors.HushsumError)} == set(errors.KINDS.values())


@pytest.mark.parametrize("name", model_names())
def test_every_parameter_of_a_model_is_in_its_docstring(name: str) -> None:
    kind = model_class(name)
    documented = kind.__doc__ or ""
    assert documented.count("    Parameters\n    ----------\n") == 1
    for each in kind.PARAMETERS:
        assert f"\n    {each.name} : {each.rule()}" in documented
        assert each.help.split()[0] in documented


@pytest.mark.parametrize("name", model_names())
def test_the_page_of_parameters_has_every_model(name: str) -> None:
    assert f"## `{model_class(name).__name__}`\n" in reference.model_parameters()


def test_every_kind_of_refusal_is_on_the_page_of_the_service() -> None:
    service = (DOCS / "reference" / "service.md").read_text(encoding="utf-8").splitlines()
    statuses = {kind: each.status for kind, each in errors.KINDS.items() if each.status < 500}
    missing = [
        kind
        for kind, status in statuses.items()
        if not any(line.startswith(f"| {status} |") and f"`{kind}`" in line for line in service)
    ]
    assert missing == []


def test_every_exit_code_is_on_the_command_line_page() -> None:
    assert [code for code in (0, 1, 2, 3, 4, 5, 6, 130, 141, 143) if f"| {code} |" not in COMMAND_LINE] == []


def test_every_command_is_run_in_an_example() -> None:
    shown = "\n".join(examples("console"))
    assert [name for name in commands() if f"hushsum {name} " not in shown] == []


def test_every_command_has_its_section() -> None:
    sections = reference.HELP.findall(COMMAND_LINE)
    assert sorted(sections) == sorted(commands())


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_has_help(name: str) -> None:
    command = commands()[name]
    visible = [each for each in command.params if not each.hidden and each.name != "help"]
    assert [each.name for each in visible if not each.help] == []
    written = reference.command_help(command, name)
    options = [option for each in visible for option in each.opts if option.startswith("--")]
    assert [option for option in options if option not in written] == []


def test_what_every_project_has_is_there() -> None:
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"):
        assert (ROOT / name).stat().st_size > 500, name


def test_links_inside_the_project_lead_somewhere() -> None:
    link = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
    broken = [
        (page_id(page), target)
        for page in all_pages()
        for target in link.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
        and Path(target).name not in GENERATED
        and not reference.PICTURES.search(target)
    ]
    assert broken == []


def test_the_changelog_has_this_version() -> None:
    assert f"## [{hs.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/explanation/architecture.md"])
def test_every_file_that_is_named_exists(name: str) -> None:
    named = set(re.findall(r"`((?:[\w-]+/)+[\w-]+\.\w+)`", (ROOT / name).read_text(encoding="utf-8")))
    folders = (ROOT, ROOT / "src", ROOT / "src" / "hushsum")
    missing = [each for each in named if not any((folder / each).exists() for folder in folders)]
    assert [each for each in missing if "yours" not in each] == []
