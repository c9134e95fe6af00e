"""Which modules of hushsum run in each of the five flows that docs/explanation/architecture.md describes.

A module is counted if one of its functions is called while the flow runs. Everything is imported before, so
that imports are not counted; dataclasses whose generated methods alone run are not counted either. Child
processes (a worker of the service, the process that decodes Parquet) are not followed: the service's jobs
run in this process, as ``JobRunner.next`` runs them in a worker.

``python -m tests.flows`` writes the lists into the page; with ``--json`` it prints them instead.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
from typer.testing import CliRunner

import hushsum as hs

_SOURCE: Final = str(Path(hs.__file__).parent) + os.sep
_NOT_FUNCTIONS: Final = frozenset({"<module>", "__getattr__"})

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "architecture.md"
X: Final = np.random.default_rng(0).uniform(0.0, 1.0, (400, 2))


def import_everything() -> None:
    """Import every module, so that no flow is charged with an import."""
    for module in pkgutil.walk_packages(hs.__path__, "hushsum."):
        if module.name != "hushsum.__main__" and ".migrations" not in module.name:
            importlib.import_module(module.name)


@contextmanager
def recorded() -> Iterator[set[str]]:
    """The modules whose functions are called in the block, in every thread."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(_SOURCE) and code.co_name not in _NOT_FUNCTIONS:
                files.add(code.co_filename)

    modules: set[str] = set()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield modules
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        modules.update(_name(each) for each in files)


def _name(file: str) -> str:
    """``privacy/noise/discrete_gaussian_sampler`` for a file of that name."""
    return (
        file.removeprefix(_SOURCE).removesuffix(".py").removesuffix(os.sep + "__init__").replace(os.sep, "/")
    )


def python_release(folder: Path) -> set[str]:
    """Plan, count and release in one call; query, save and load."""
    with recorded() as modules:
        f = hs.release(X, bandwidth=0.2, bounds=(0, 1), epsilon=1.0)
        f.query(X[:5])
        f.save(folder / "f.hush")
        hs.load(folder / "f.hush")
    return modules


def command_line(folder: Path) -> set[str]:
    """A CSV file becomes a tally, a function booked in a ledger, and answers."""
    from hushsum.cli.main import app

    source = folder / "x.csv"
    source.write_text("a,b\n" + "".join(f"{a:.3f},{b:.3f}\n" for a, b in X), encoding="utf-8")
    ledger, tally, function = (str(folder / name) for name in ("ledger.db", "x.tally", "x.hush"))
    commands = [
        ["ledger", "init", "--ledger", ledger, "--dataset", "town", "--epsilon", "2"],
        ["tally", str(source), "--bandwidth", "0.2", "--bounds", "0:1", "--rows", "50", "-o", tally],
        [
            "release",
            tally,
            "--epsilon",
            "1",
            "--ledger",
            ledger,
            "--dataset",
            "town",
            "--yes",
            "-o",
            function,
        ],
        ["query", function, "--at", "0.5,0.5"],
    ]
    run = CliRunner()
    with recorded() as modules:
        for command in commands:
            result = run.invoke(app, command, catch_exceptions=False)
            assert result.exit_code == 0, (command, result.output)
    return modules


def service(folder: Path) -> set[str]:
    """An upload becomes a function in a dataset's budget; an analyst queries it."""
    from tests.in_process_service import SMALL, Town

    town = Town(folder)
    with recorded() as modules:
        dataset = town.dataset(epsilon=2.0)
        upload = town.upload(dataset)
        counted = town.job(f"/datasets/{dataset}/tallies", {"upload": upload, **SMALL})
        confirmed = town.confirmed(dataset, counted["result"]["tally"], epsilon=0.5)
        released = town.job(f"/datasets/{dataset}/releases", confirmed)
        path = f"/functions/{released['result']['function']}/query"
        town.ok("olga", "POST", path, json={"points": [[1.0, -2.0]]})
    return modules


def classifier(folder: Path) -> set[str]:
    """Fit, predict, save and load."""
    labels = (X[:, 0] > 0.5).astype(int)
    with recorded() as modules:
        model = hs.PrivateClassifier(epsilon=1.0, bounds=(0, 1), classes=[0, 1]).fit(X, labels)
        model.predict(X[:5])
        model.save(folder / "model.hush")
        hs.load(folder / "model.hush")
    return modules


def summarization(folder: Path) -> set[str]:
    """Three owners and a consumer in one process."""
    from hushsum.summarize import summarize

    owners = {name: X + shift for name, shift in (("north", 0.0), ("south", 0.5), ("east", 1.0))}
    with recorded() as modules:
        summarize(owners, X[:50], size=20, bandwidth=0.5, epsilon=2.0, delta=1e-5, features=50)
    return modules


FLOWS: Final[dict[str, Callable[[Path], set[str]]]] = {
    "python": python_release,
    "command line": command_line,
    "service": service,
    "classifier": classifier,
    "summarize": summarization,
}


BEFORE: Final = {
    "python": ("release from Python", 52),
    "command line": ("command line: file → tally → release with ledger → query", 83),
    "service": ("service: release and query", 87),
    "classifier": ("classifier: fit and predict", 45),
    "summarize": ("summarize", 34),
}
"""Counted by this file before kernel roles, the shared request and declared models."""


def all_modules() -> dict[str, list[str]]:
    """The modules of each flow, sorted. All flows run in one process, in the order of ``FLOWS``."""
    import_everything()
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HUSHSUM_STATE"] = str(Path(folder) / "state")
        for name, run in FLOWS.items():
            place = Path(folder) / name.replace(" ", "_")
            place.mkdir()
            found[name] = sorted(run(place))
    return found


def with_modules(text: str, modules: dict[str, list[str]]) -> str:
    """The page with these lists in place of those it has."""
    begin, end = "<!-- counts: written by python -m tests.flows -->\n", "<!-- end of counts -->\n"
    text = _replaced(text, begin, end, _counts(modules))
    for name, found in modules.items():
        begin, end = (
            f"<!-- modules of {name}: written by python -m tests.flows -->\n",
            "<!-- end of modules -->\n",
        )
        text = _replaced(text, begin, end, _table(found))
    return text


def _replaced(text: str, begin: str, end: str, block: str) -> str:
    before, rest = text.split(begin)
    return before + begin + block + end + rest.split(end, 1)[1]


def _counts(modules: dict[str, list[str]]) -> str:
    head = "| flow | before | now |\n|---|---|---|\n"
    rows = [
        f"| {title} | {measured} | {len(modules[name])} |\n" for name, (title, measured) in BEFORE.items()
    ]
    return head + "".join(rows)


def _table(modules: list[str]) -> str:
    """One row per package."""
    packages: dict[str, list[str]] = {}
    for each in modules:
        package, _, module = each.partition("/")
        packages.setdefault(package, []).append(f"`{module or package}`")
    rows = [f"| `{package}` | {len(names)} | {', '.join(names)} |" for package, names in packages.items()]
    return (
        "\n".join(["| package | modules | |", "|---|---|---|", *rows, f"| all | {len(modules)} | |"]) + "\n"
    )


if __name__ == "__main__":
    if "--json" in sys.argv:
        print(json.dumps(all_modules()))
    else:
        PAGE.write_text(with_modules(PAGE.read_text(encoding="utf-8"), all_modules()), encoding="utf-8")
