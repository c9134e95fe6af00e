"""The files of the page: all of them are given out, and nothing else."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import hushsum.service
from hushsum.plotting import reader_folder
from hushsum.records import ENCODINGS, UNITS
from hushsum.service.http import READER, assets
from tests.in_process_service import Town

WEB = Path(hushsum.service.__file__).parent / "web"
_MARKUP = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")
_IMPORT = re.compile(r"""(?:import|from)\s*\(?["'](\.[^"']+)["']|@import "([^"]+)";""")


def test_the_page_is_there_without_anything_inline(town: Town) -> None:
    page = town.ask(None, "GET", "/")
    assert page.headers["content-type"].startswith("text/html")
    assert "<html" in page.text
    assert 'name="viewport"' in page.text
    assert "without-script" in page.text
    assert "<script>" not in page.text
    assert "style=" not in page.text
    assert "http://" not in page.text.replace("http://www.w3.org/", "")
    assert "https://" not in page.text
    found = re.findall(r'(?:src|href)="(assets/[^"]+)"', page.text)
    assert len(found) > 30
    for path in found:
        assert town.ask(None, "GET", f"/{path}").status_code == 200, path
    assert not re.findall(r'(?:src|href)="/', page.text), "below a sub-path, addresses must be relative"


def test_every_file_is_an_asset_and_every_import_finds_one() -> None:
    known = assets()
    shared = {
        prefix + str(path.relative_to(reader_folder() / folder))
        for folder, prefix in (("explorer", "app/explorer/"), ("styles", "styles/"))
        for path in (reader_folder() / folder).rglob("*.*")
    }
    # The module of a page that is a file of its own.
    shared.remove("app/explorer/page.js")
    own = {str(path.relative_to(WEB)) for path in WEB.rglob("*.*")}
    assert own | shared | {READER} == set(known)
    imported = {"app/main.js", "app/shared.js", "app/early.js", "page.css", "mark.svg"}
    imported |= {"index.html", "shared.html"}
    for name, asset in known.items():
        for script, style in _IMPORT.findall(asset.body.decode()):
            found = (WEB / name).parent.joinpath(script or style).resolve().relative_to(WEB.resolve())
            assert str(found) in known, f"{name} imports {found}"
            imported.add(str(found))
    assert imported == set(known)


def test_an_asset_is_asked_for_again_and_not_sent_again(town: Town) -> None:
    first = town.ask(None, "GET", "/assets/app/main.js")
    assert first.headers["content-type"].startswith("text/javascript")
    assert first.headers["cache-control"] == "no-cache"
    again = town.ask(None, "GET", "/assets/app/main.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert town.ask(None, "GET", "/assets/app/main.js", headers={"if-none-match": '"x"'}).content


@pytest.mark.parametrize(
    "name", ["index.html", "shared.html", "nothing.js", "..%2fsettings.py", "app", "app/", ""]
)
def test_nothing_else_is_an_asset(town: Town, name: str) -> None:
    assert town.ask(None, "GET", f"/assets/{name}").status_code == 404


def test_nothing_is_built_from_text_as_markup() -> None:
    for name, asset in assets().items():
        if name.endswith(".js"):
            text = asset.body.decode()
            for word in (
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
            ):
                assert word not in text, f"{name} uses {word}"


def test_the_page_offers_every_encoding_of_csv_files() -> None:
    text = assets()["app/release/file_form.js"].body.decode()
    listed = text.partition("const ENCODINGS = [")[2].partition("];")[0]
    assert ["utf-8", *re.findall(r'^  \["([^"]+)"', listed, re.MULTILINE)] == list(ENCODINGS)


def test_the_page_counts_dates_in_the_units_of_the_library() -> None:
    text = assets()["app/release/date_fields.js"].body.decode()
    day = re.search(r"const DAY = ([\d_]+);", text)
    assert day is not None
    listed = text.partition("const UNITS = {")[2].partition("}")[0]
    found = {
        name: math.prod(int(each) if each[0].isdigit() else int(day[1]) for each in number.split(" * "))
        for name, number in re.findall(r"(\w+): ([\w *]+)", listed)
    }
    assert {name: 1000 * each for name, each in found.items()} == UNITS
