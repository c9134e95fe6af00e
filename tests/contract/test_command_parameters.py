"""Commands and requests beyond ``release``: the names and defaults of the Python calls that they stand for.

``test_release_parameters`` has the release itself. What a surface does not have, or calls by another name, is
listed here with its reason; everything else must agree, and a new parameter must reach every surface.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
from click import Option
from pydantic import BaseModel
from typer.main import get_command
from typer.testing import CliRunner

import hushsum as hs
from hushsum.cli import collect, compare, federate, heatmap, merge, option_values, watch
from hushsum.cli import tally as tally_command
from hushsum.cli.main import application
from hushsum.client import RemoteDataset
from hushsum.federated import ReportTerms, collect_reports
from hushsum.jobs.kernel_and_method import KernelChoice, TableSize
from hushsum.privacy.claim import Relation
from hushsum.privacy.release_request import ReleaseRequest
from hushsum.service.schemas.streams import StreamClaimRequest

REQUIRED = "required"
BUDGET = {"budget": "given as ledger and dataset"}


def parameters(of: Any) -> dict[str, Any]:
    """Names and defaults of a call, a dataclass or the fields of a request."""
    if isinstance(of, type) and issubclass(of, BaseModel):
        found = {
            name: REQUIRED if each.is_required() else each.default for name, each in of.model_fields.items()
        }
    else:
        found = {
            name: REQUIRED if each.default is inspect.Parameter.empty else each.default
            for name, each in inspect.signature(of).parameters.items()
        }
    return {name: str(value) if isinstance(value, Relation) else value for name, value in found.items()}


@dataclass(frozen=True)
class Pair:
    """A Python call, another surface, and the parameters that differ there: why, or by which name."""

    python: Callable[..., Any]
    surface: Any
    differ: dict[str, str] = field(default_factory=dict)


STREAM = {
    "tally": "made from the kernel and the sizes that are given",
    "rows": "those of the table that is counted",
    "unit": "follows from the columns",
    "removals": "files and uploads are only added",
    "path": "the state is a file of the command, or of the service",
    "encryption_key": "in a file, or a setting of the service",
}
PAIRS = {
    "watch": Pair(hs.stream, watch.watch, {**STREAM, **BUDGET}),
    "a stream of the service": Pair(
        hs.stream,
        StreamClaimRequest,
        {
            **STREAM,
            "budget": "that of the dataset",
            "idempotency_key": "a header",
            "insecure_noise_seed": "not offered: noise of a service has no seed",
        },
    ),
    "a stream by the client": Pair(
        hs.stream,
        RemoteDataset.stream,
        {
            **STREAM,
            "budget": "that of the dataset",
            "insecure_noise_seed": "not offered: noise of a service has no seed",
        },
    ),
    "heatmap": Pair(
        hs.heatmap,
        heatmap.heatmap,
        {
            **BUDGET,
            "points": "files",
            "geographic": "--plane is its opposite",
            "bounds": "a released file declares its own",
            "bandwidth": "a released file declares its own",
        },
    ),
    "compare": Pair(
        hs.compare, compare.compare, {"f": "a file", "g": "a file", "names": "those of the files"}
    ),
    "merge": Pair(hs.merge, merge.merge, {"functions": "files"}),
    "collect terms": Pair(ReportTerms.of, collect.terms, {"kernel": "a name"}),
    "collect reports": Pair(collect_reports, collect.reports, {"reports": "files"}),
    "federate terms": Pair(
        ReleaseRequest,
        federate.terms,
        {
            "budget": "debited at each site",
            "idempotency_key": "follows from the run",
            "insecure_noise_seed": "not offered: several parties draw the noise",
            "mechanism": "follows from the promise: shares of noise exist for few",
            "rounded": "cells are masked as they are",
            "rows": "None is auto",
        },
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_surface_has_the_parameters_of_the_python_call(name: str) -> None:
    pair = PAIRS[name]
    python, surface = parameters(pair.python), parameters(pair.surface)
    assert set(pair.differ) <= set(python), "a difference is listed that no longer exists"
    shared = {each: python[each] for each in python if each not in pair.differ}
    assert {each: surface.get(each, "missing") for each in shared} == shared


@pytest.mark.parametrize(
    ("command", "lacks"),
    [
        (tally_command.tally, set()),
        # Their steps are those of the stream, not of the values of a grid's columns.
        (watch.watch, set()),
        (StreamClaimRequest, set()),
        # Reports are made of hash rows alone.
        (
            collect.terms,
            {
                "method",
                "spacing",
                "features",
                "degree",
                "steps",
                "groups",
                "structured",
                "smoothness",
                "radius",
            },
        ),
    ],
)
def test_a_table_can_be_described_in_full_wherever_one_is_counted(command: Any, lacks: set[str]) -> None:
    described = {each.name for kind in (KernelChoice, TableSize) for each in fields(kind)} - {"name"}
    given = set(parameters(command))
    assert "kernel" in given
    assert described - given == lacks


DATES = {"dates", "date_format", "date_unit", "date_origin"}
READING_LACKS = {
    # Every point is answered.
    "query": {"drop_missing"},
    "predict": {"drop_missing"},
    # Of places, and of columns that are kept as they are.
    "heatmap": DATES,
    "synthesize": DATES,
    # Of public rows alone, whose ranges are numbers.
    "plan": {"drop_missing", "sheet", *DATES},
}


def _commands() -> Iterator[tuple[str, Any]]:
    """Every command by its name, those of groups with the name of the group."""
    top: Any = get_command(application())
    for name, each in top.commands.items():
        for own, command in getattr(each, "commands", {"": each}).items():
            yield f"{name} {own}".strip(), command


def test_files_of_records_are_declared_alike_by_every_command() -> None:
    declared = parameters(option_values.cell_format)
    found = {}
    for name, command in _commands():
        given = {each.name: each.default for each in command.params}
        told = [getattr(each, "help", "") or "" for each in command.params if not isinstance(each, Option)]
        # Whatever reads cells has a decimal sign, and whoever reads records says so.
        if "decimal" not in given and not any("CSV, Parquet" in each for each in told):
            continue
        lacks = READING_LACKS.get(name, set())
        found[name] = {each: given.get(each, "missing") for each in declared if each not in lacks}
        assert not lacks & given.keys(), f"{name} has an option that is listed as missing"
    assert found.keys() >= {"release", "benchmark", "summarize owner", "summarize curator", *READING_LACKS}
    for name, options in found.items():
        assert options == {each: declared[each] for each in options}, name


def test_a_bandwidth_means_the_same_in_every_command(tmp_path: Path) -> None:
    """Of columns whose ranges differ much it is a fraction of them, unless units are requested."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("age,salary\n40,30000\n50,60000\n")
    table = ["--columns", "age,salary", "--bounds", "0:100,0:300000", "--bandwidth", "0.1", "--rows", "8"]

    def run(*words: str) -> None:
        result = CliRunner().invoke(application(words[0]), [*words, *table])
        assert result.exit_code == 0, result.output

    def kernels(*scale: str) -> list[Any]:
        folder = tmp_path / "-".join(["out", *scale])
        folder.mkdir()
        run("tally", str(tmp_path / "in" / "a.csv"), "-o", str(folder / "a.tally"), *scale)
        run("collect", "terms", "--epsilon", "1", "-o", str(folder / "terms.json"), *scale)
        run(
            *("watch", str(tmp_path / "in"), "--every", "day", "--steps", "3", "--epsilon", "1", "--yes"),
            *("--state", str(folder / "a.stream"), "-o", str(folder), "--once", *scale),
        )
        with hs.open_stream(folder / "a.stream") as stream:
            followed = stream._state.tally.kernel
        terms = ReportTerms.from_bytes((folder / "terms.json").read_bytes())
        return [hs.load_tally(folder / "a.tally").kernel, terms.basis.kernel, followed]

    assert kernels() == [hs.scaled(hs.EuclideanKernel(2, 0.1), ((0, 100), (0, 300_000)))] * 3
    assert kernels("--scale", "units") == [hs.EuclideanKernel(2, 0.1)] * 3
