"""Everything public is documented somewhere a reader would look."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hushsum as hs
from hushsum import errors

from .cli_help import PAGE, commands, parameters_of
from .error_table import with_table
from .pages import DOCS, ROOT, all_pages, blocks_of, page_id

REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("*.md")))
ERRORS = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")


def exceptions() -> list[type[errors.HushsumError]]:
    return [
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, errors.HushsumError)
    ]


def examples(*languages: str) -> Iterator[str]:
    for page in all_pages():
        for block in blocks_of(page):
            if block.language in languages and block.not_run is None:
                yield block.code


@pytest.mark.parametrize("name", hs.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    public = getattr(hs, name)
    path = getattr(public, "__module__", None)
    assert f"`hs.{name}`" in REFERENCE or f"::: {path}.{name}\n" in REFERENCE


@pytest.mark.parametrize("name", [name for name in hs.__all__ if callable(getattr(hs, name))])
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(getattr(hs, name))


def test_the_table_of_errors_is_as_the_classes_are() -> None:
    assert with_table(ERRORS) == ERRORS, "run python -m tests.docs.error_table"
    assert set(exceptions()) == set(errors.KINDS.values())


@pytest.mark.parametrize("kind", sorted(kind for kind, each in errors.KINDS.items() if each.status < 500))
def test_every_kind_of_refusal_is_on_the_page_of_the_service(kind: str) -> None:
    service = (DOCS / "reference" / "service.md").read_text(encoding="utf-8")
    rows = [line for line in service.splitlines() if f"`{kind}`" in line]
    assert any(line.startswith(f"| {errors.KINDS[kind].status} |") for line in rows)


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 6, 130, 141, 143])
def test_every_exit_code_is_on_the_command_line_page(code: int) -> None:
    assert f"| {code} |" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_is_run_in_an_example(name: str) -> None:
    assert any(f"hushsum {name} " in code for code in examples("console"))


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_is_explained(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for each in parameters_of(commands()[name]):
        assert each.help or each.hidden, f"{name} {each.shown} has no help"
        assert all(option in text for option in each.names or (each.metavar,))


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"])
def test_what_every_project_has_is_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 500


@pytest.mark.parametrize("page", all_pages(), ids=page_id)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_changelog_has_this_version() -> None:
    assert f"## [{hs.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_make_target_is_in_contributing() -> None:
    targets = next(
        line.removeprefix(".PHONY:").split()
        for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
        if line.startswith(".PHONY:")
    )
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [target for target in targets if f"`make {target}`" not in text] == []
