"""Everything public is documented somewhere a reader would look."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

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


def test_every_public_name_is_in_the_reference() -> None:
    def is_there(name: str) -> bool:
        path = getattr(getattr(hs, name), "__module__", None)
        return f"`hs.{name}`" in REFERENCE or f"::: {path}.{name}\n" in REFERENCE

    assert [name for name in hs.__all__ if not is_there(name)] == []


def test_every_public_name_has_a_docstring() -> None:
    public = [name for name in hs.__all__ if callable(getattr(hs, name))]
    assert [name for name in public if not inspect.getdoc(getattr(hs, name))] == []


def test_the_table_of_errors_is_as_the_classes_are() -> None:
    assert with_table(ERRORS) == ERRORS, "run python -m tests.docs.error_table"
    assert set(exceptions()) == set(errors.KINDS.values())


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
    text = PAGE.read_text(encoding="utf-8")
    assert [code for code in (0, 1, 2, 3, 4, 5, 6, 130, 141, 143) if f"| {code} |" not in text] == []


def test_every_command_is_run_in_an_example() -> None:
    shown = "\n".join(examples("console"))
    assert [name for name in commands() if f"hushsum {name} " not in shown] == []


def test_every_option_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, command in commands().items():
        for each in parameters_of(command):
            assert each.help or each.hidden, f"{name} {each.shown} has no help"
            assert all(option in text for option in each.names or (each.metavar,)), f"{name} {each.shown}"


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
    ]
    assert broken == []


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
