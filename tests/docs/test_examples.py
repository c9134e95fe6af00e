"""Every example in the README and in docs is run, page by page, in an empty folder.

The blocks of a page share a namespace and a folder. A ``python`` block with prompts is compared with the
output it shows, one without prompts must run. The commands of a ``console`` block must succeed, and are
compared where output is shown. An example that carries the comment ``# noisy`` shows a private answer: its
numbers may differ by one unit of their last written place, or by a tenth. That is at least six standard
deviations of the noise, so a sound build fails in fewer than one run of 10⁸. A block is left out only if the
page says why, in a comment above it.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

import hushsum
from tests.free_ports import free_port

from .pages import Block, all_pages, blocks_of, page_id

LANGUAGES: Final = {"python", "console", "text", "cpp", "json", "js"}
NOISY: Final = doctest.register_optionflag("NOISY")
FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_NUMBER: Final = re.compile(r"-?\d+(?:\.(\d*))?(e[+-]\d+)?")
_RULE: Final = re.compile("─+")
"""The rule under a table's head is as long as the table is wide."""

_SERVED: Final = re.compile(r"(?:--port |--listen \S+:)(\d{4,5})\b")

RUNNABLE: Final = [
    page for page in all_pages() if {b.language for b in blocks_of(page)} & {"python", "console"}
]


class Checker(doctest.OutputChecker):
    """Compares text; in noisy examples, numbers to within one unit of the last place, or a tenth."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = (_RULE.sub("─", text) for text in (want, got))
        if super().check_output(want, got, optionflags):
            return True
        if not optionflags & NOISY:
            return False
        expected, gotten = list(_NUMBER.finditer(want)), list(_NUMBER.finditer(got))
        if len(expected) != len(gotten):
            return False
        near = all(_near(w, g) for w, g in zip(expected, gotten, strict=True))
        bare_want, bare_got = (re.sub(r"\s+", "", _NUMBER.sub("#", text)) for text in (want, got))
        return near and super().check_output(bare_want, bare_got, optionflags)


def _near(expected: re.Match[str], gotten: re.Match[str]) -> bool:
    unit = 10.0 ** -len(expected[1] or "") * float(f"1{expected[2] or ''}")
    value = float(expected[0])
    return abs(value - float(gotten[0])) <= max(unit, abs(value) / 10) * (1 + 1e-9)


def test_blocks_have_a_known_language() -> None:
    found = {page_id(page): {block.language for block in blocks_of(page)} for page in all_pages()}
    unknown = {page: languages - LANGUAGES for page, languages in found.items() if languages - LANGUAGES}
    assert unknown == {}, "blocks in languages that nothing checks"


@pytest.mark.parametrize("page", RUNNABLE, ids=page_id)
def test_examples_run_as_shown(
    page: Path, tmp_path: Path, quick_command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    environment = _environment(quick_command, tmp_path / "state")
    monkeypatch.setenv("HUSHSUM_STATE", environment["HUSHSUM_STATE"])
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in with_free_ports(blocks_of(page)):
        where = f"{page_id(page)}:{block.line}"
        if block.not_run is not None:
            continue
        if block.language == "python":
            _run_python(block, names, where)
        elif block.language == "console":
            _run_console(block, environment, where)


def with_free_ports(blocks: list[Block]) -> list[Block]:
    """The same blocks, with a free port in the place of every port that a page starts a server at.

    The ports of the pages may be in use, by another run of these tests too.
    """
    servers = {port for block in blocks for port in _SERVED.findall(block.code) if block.not_run is None}
    chosen = {port: str(free_port()) for port in sorted(servers)}
    if not chosen:
        return blocks
    any_of_them = re.compile(rf"(?<![\w.])(?:{'|'.join(chosen)})\b")
    return [replace(each, code=any_of_them.sub(lambda found: chosen[found[0]], each.code)) for each in blocks]


def test_servers_of_a_page_get_free_ports(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ hushsum serve --port 18431\n$ curl localhost:18431/readyz?n=184310\n```\n")
    (block,) = with_free_ports(blocks_of(page))
    first, second = block.code.splitlines()
    port = first.removeprefix("$ hushsum serve --port ")
    assert port != "18431"
    assert second == f"$ curl localhost:{port}/readyz?n=184310"


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> 0.5  # noisy\n0.7\n```\n")
    (block,) = blocks_of(page)
    with pytest.raises(pytest.fail.Exception, match=r"0\.7"):
        _run_python(block, {}, "page.md:1")


def test_a_reason_keeps_a_block_from_running(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: for show -->\n```python\n1/0\n```\n")
    assert [block.not_run for block in blocks_of(page)] == ["for show"]


def _run_python(block: Block, names: dict[str, Any], where: str) -> None:
    if ">>> " not in block.code:
        exec(compile(block.code, where, "exec"), names)
        return
    examples = doctest.DocTestParser().get_examples(block.code, where)
    for example in examples:
        if "# noisy" in example.source:
            example.options[NOISY] = True
    report: list[str] = []
    runner = doctest.DocTestRunner(Checker(), verbose=False, optionflags=FLAGS)
    test = doctest.DocTest(examples, names, where, where, block.line - 1, block.code)
    runner.run(test, out=report.append, clear_globs=False)
    # The runner works on a copy unless the names are its own.
    names.update(test.globs)
    if runner.summarize(verbose=False).failed:
        pytest.fail("".join(report), pytrace=False)


def _run_console(block: Block, environment: dict[str, str], where: str) -> None:
    for command, shown in _commands(block.code):
        done = subprocess.run(
            ["sh", "-c", command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            pytest.fail(f"{where}: {command!r} ended with {done.returncode}\n{done.stdout}", pytrace=False)
        flags = FLAGS | (NOISY if "# noisy" in command else 0)
        if shown.strip() and not Checker().check_output(shown, done.stdout, flags):
            pytest.fail(f"{where}: {command!r}\nshown:\n{shown}\ngot:\n{done.stdout}", pytrace=False)


def _commands(code: str) -> list[tuple[str, str]]:
    """Commands after ``$``, with their continuation lines, and the output shown below each."""
    found: list[tuple[str, str]] = []
    continued = False
    for line in code.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif continued:
            found[-1] = (found[-1][0] + line, "")
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
        continued = line.endswith("\\\n") and (line.startswith("$ ") or continued)
    return [(command.strip(), shown) for command, shown in found]


def _environment(command: Path, state: Path) -> dict[str, str]:
    """The command on the path, with a plain terminal of fixed width."""
    source = str(Path(hushsum.__file__).parents[1])
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])),
        "COLUMNS": "100",
        "HUSHSUM_STATE": str(state),
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
