"""Writes the parts of the reference that the code declares, while the site is built.

A page says where with a comment: ``<!-- help: release -->`` is replaced by the help of a command,
``<!-- errors -->`` by the table of exceptions, ``<!-- contents -->`` by a table of what the page describes,
``<!-- packages -->`` by the packages and their purposes.
``reference/model-parameters.md`` and ``reference/openapi.json`` are generated as a whole. Pictures that
``make pictures`` has not written are empty.
"""

from __future__ import annotations

import base64
import configparser
import inspect
import os
import re
import tempfile
import textwrap
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from fastapi import FastAPI
from typer.main import get_command

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT: Final = Path(__file__).parents[2]
WIDTH: Final = 100
HELP: Final = re.compile(r"<!-- help: (?P<name>[\w -]+?) -->")
DIRECTIVE: Final = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
PICTURES: Final = re.compile(r"(?:screenshots|figures/gallery)/[\w-]+\.png")
EMPTY_PICTURE: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
TYPES: Final = re.compile(r" <([^>]+)>$")
WORDS: Final = {"int": "INTEGER", "float": "NUMBER"}
PARAMETERS_HEAD: Final = """# Parameters of models

Every parameter of every model, from the declarations that also make the checks, the forms of the service
and the options of [`hushsum fit`](../how-to/models.md#command-line). `random_state` and the budget of a
release are the same for all, and are left out here.
"""


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are generated as a whole."""
    from mkdocs.structure.files import File  # the tests of this file need no MkDocs

    generated = {"reference/model-parameters.md": model_parameters(), "reference/openapi.json": openapi()}
    for path, content in generated.items():
        files.append(File.generated(config, path, content=content))
    for path in missing_pictures(Path(config.docs_dir)):
        files.append(File.generated(config, path, content=EMPTY_PICTURE))
    return files


def missing_pictures(docs: Path) -> list[str]:
    """Pictures that pages show and that ``make pictures`` has not written."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in docs.rglob("*.md"))
    return sorted(path for path in set(PICTURES.findall(pages)) if not (docs / path).exists())


def on_page_markdown(text: str, **_: Any) -> str:
    """Put generated parts in the place of their comments."""
    known = commands() if HELP.search(text) else {}
    text = HELP.sub(lambda found: f"```text\n{command_help(known[found['name']], found['name'])}\n```", text)
    for comment, generated in (
        ("<!-- errors -->", error_table),
        ("<!-- contents -->", partial(contents, text)),
        ("<!-- packages -->", packages),
    ):
        if comment in text:
            text = text.replace(comment, generated())
    return text


@cache
def commands() -> dict[str, Any]:
    """Every command by its name; those of a group by both names."""
    from hushsum.cli.main import application

    found: dict[str, Any] = {}
    for name, each in get_command(application()).commands.items():  # type: ignore[attr-defined]
        inner = getattr(each, "commands", None)
        found |= {name: each} if inner is None else {f"{name} {sub}": inner[sub] for sub in inner}
    return found


def command_help(command: Any, name: str) -> str:
    """Usage, description, arguments and options of a command, options in their groups."""
    context = command.context_class(command, info_name=f"hushsum {name}", max_content_width=WIDTH)
    lines = [" ".join(command.get_usage(context).split()), ""]
    for paragraph in (command.help or "").split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), WIDTH), ""]
    groups: dict[str, list[tuple[str, str]]] = {}
    for each in command.get_params(context):
        record = each.get_help_record(context)
        if record is not None and not each.hidden and each.name != "help":
            title = each.rich_help_panel or ("Options" if each.opts[0].startswith("-") else "Arguments")
            kind = TYPES.sub(lambda found: f" {WORDS.get(found[1], 'TEXT')}", record[0])
            name = kind if each.opts[0].startswith("-") else TYPES.sub("", record[0])
            groups.setdefault(title, []).append((name, record[1]))
    for title, records in groups.items():
        lines += [f"{title}:", *_in_columns(records), ""]
    return "\n".join(lines).rstrip()


def _in_columns(records: list[tuple[str, str]]) -> list[str]:
    column = min(max(len(name) for name, _ in records) + 4, WIDTH // 2)
    lines: list[str] = []
    for name, text in records:
        words = textwrap.wrap(" ".join(text.split()), WIDTH - column) or [""]
        head = f"  {name}".ljust(column)
        lines += [head + words[0]] if len(head) <= column else [head, " " * column + words[0]]
        lines += [" " * column + line for line in words[1:]]
    return [line.rstrip() for line in lines]


def error_table() -> str:
    """One row per exception, in the order of their tree."""
    from hushsum.errors import KINDS, HushsumError

    rows = [
        "| exception | also a | meaning | kind | HTTP status | exit code |",
        "|---|---|---|---|---:|---:|",
    ]
    for each in KINDS.values():
        bases = ", ".join(f"`{base.__name__}`" for base in each.__bases__ if base is not HushsumError)
        meaning = " ".join(inspect.cleandoc(each.__doc__ or "").split("\n\n")[0].split())
        cells = (
            f"`{each.__name__}`",
            bases,
            meaning,
            f"`{each.kind}`",
            str(each.status),
            str(each.exit_code),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def contents(text: str) -> str:
    """A table of the functions and classes that a page describes."""
    return "\n".join(["| name | purpose |", "|---|---|", *map(_contents_row, DIRECTIVE.findall(text))])


def _contents_row(path: str) -> str:
    found, name = resolved(path)
    summary = (inspect.getdoc(found) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    plain = re.sub(r":\w+:`~?\.?([^`]*)`", r"`\1`", summary).replace("``", "`")
    sentence = re.match(r".*?\.(?= |$)", plain)
    return f"| [`{name}`][{path}] | {sentence[0] if sentence else plain} |"


def resolved(path: str) -> tuple[Any, str]:
    """What a directive names, a module or something in one, and its short name."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name), name
    except (ImportError, AttributeError):
        return import_module(path), path


def packages() -> str:
    """The packages and their purposes, in the order of the layers of ``.importlinter``."""
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter", encoding="utf-8")
    rows = ["| layer | package | purpose |", "|---:|---|---|"]
    layers = rules["importlinter:contract:layers"]["layers"].split()
    number = 0
    for name, before in zip(layers, ["", *layers], strict=False):
        if name != "|":
            number += before != "|"
            module = import_module(f"hushsum.{name.removeprefix('hushsum.')}")
            purpose = " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
            plain = re.sub(r":\w+:`", "`", purpose).replace("``", "`").replace("|", "\\|")
            rows.append(f"| {number} | `{name.removeprefix('hushsum.')}` | {plain} |")
    return "\n".join(rows)


def model_parameters() -> str:
    """The page of all models' parameters."""
    from hushsum.cli.declared_options import option_name
    from hushsum.declaration import OWNER, SETTING
    from hushsum.operations.models import model_class, model_names

    lines = [PARAMETERS_HEAD]
    for name in model_names():
        kind = model_class(name)
        lines += [f"## `{kind.__name__}`", "", f"`hushsum fit {name}`", ""]
        lines += ["| parameter | option | default | meaning |", "|---|---|---|---|"]
        for each in kind.PARAMETERS:
            if each.group == OWNER:
                continue
            option = option_name(each) if each.group == SETTING else f"--{each.name}"
            rule = each.rule()
            meaning = f"{each.help} {rule[:1].upper()}{rule[1:]}.".replace("|", "\\|")
            lines.append(f"| `{each.name}` | `{option}` | `{each.default!r}` | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def service() -> FastAPI:
    """A service on a folder that is gone afterwards, of use for its description alone."""
    from hushsum.service.http import create_app
    from hushsum.service.settings import Settings

    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, HUSHSUM_STATE=f"{folder}/state"):
        return create_app(Settings(folder=f"{folder}/service", admin_token="x" * 32))


def openapi() -> str:
    """The description of the service."""
    from hushsum.service.http.app import as_text

    return as_text(service())
