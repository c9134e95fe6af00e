"""Commands that read released files and spend nothing, from ``hushsum query`` to ``hushsum audit``."""

from __future__ import annotations

import csv
import io
import json as json_format
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hushsum.analysis import compare as run
from hushsum.declaration import required, setting
from hushsum.errors import Parameter, UsageError
from hushsum.operations import (
    ARROW,
    PARQUET,
    STANDARD,
    EdgeColumns,
    FunctionDescription,
    ModelDescription,
    QueryTerms,
    RecordFiles,
    audit_file,
    check_answers_output,
    check_output,
    describe_file,
    open_function,
    plot_function,
    predict_file,
    query_file,
    query_nodes,
    query_points,
    sample_release,
)
from hushsum.operations import write_table as write_arrow_table
from hushsum.planning import bytes_in_words
from hushsum.plotting import check_format, save_figure, write_page
from hushsum.records import DateFormat, names_in_words

from . import options
from .declared_options import Reworded, Without
from .output import (
    progress_bar,
    reader_may_leave,
    results_to,
    short,
    tell,
    write,
    write_answers,
    write_facts,
    write_json,
    write_result,
    write_table,
)
from .release_report import warn_if_insecure
from .tally import write_tally


def query(
    function: options.ReleasedFile,
    at: list[str] | None = typer.Option(
        None, metavar="VALUES", help="A point such as 120,80,60, or the members of a set; may be repeated."
    ),
    points: str | None = setting(None, "Points in CSV, Parquet or Arrow; - reads CSV.", metavar="FILE"),
    node: list[str] | None = typer.Option(
        None, metavar="ID", help="A node of the graph given by --graph; may be repeated."
    ),
    graph: str | None = setting(None, "Public edge list, in which --node is looked up.", metavar="FILE"),
    *,
    edges: Annotated[EdgeColumns, Without("nodes", "sorted")],
    records: Annotated[RecordFiles, Without("bounds", "unit_column", "max_per_unit", "drop_missing")],
    terms: QueryTerms,
    json: options.Json = False,
) -> None:
    """Query a released function. This spends nothing.

    Points given by --at are answered in a table. Points of a file are answered as CSV, with the columns of
    the file first, while the file is read.

    hushsum query skin.hush --at 120,80,60

    hushsum query hired.hush --dates hired --at 2024-05-31
    """
    if sum(each is not None for each in (at, points, node)) != 1:
        rule = ("or ", Parameter("points"), " or ", Parameter("node"), " must be given, one of them")
        raise UsageError("at", rule, got="several or none")
    if (node is None) != (graph is None):
        raise UsageError("node", ("and ", Parameter("graph"), " go together"), got="one of them")
    head = {"of": terms.of, "level": terms.level}
    if points is not None:
        answer = partial(query_file, function, replace(records, paths=(points,)), terms)
        write_answers(answer, points, as_json=json, head=head)
        return
    if node is not None and graph is not None:
        answered = query_nodes(function, node, graph, terms, edges)
    else:
        typed = [options.point_with_dates(each, "at") for each in at or []]
        answered = query_points(function, typed, terms, records.cells.dates)
    if json:
        write_json({**head, "answers": answered.as_json()})
        return
    rows = zip(at or node or [], *answered.answers.values(), strict=True)
    write_table(
        ("at", *answered.answers),
        [(text, *("–" if math.isnan(each) else short(each) for each in numbers)) for text, *numbers in rows],
        left=1,
    )


def predict(
    model: options.ReleasedFile,
    points: str = typer.Argument(metavar="FILE", help="Points in CSV, Parquet or Arrow; - reads CSV."),
    output: str = setting("-", "The file to write; - is standard output."),
    *,
    records: Annotated[
        RecordFiles, Without("bounds", "unit_column", "max_per_unit", "set_column", "drop_missing")
    ],
    json: bool = setting(False, "Write JSON instead of CSV."),
) -> None:
    """Predict with a released model at the points of a file. This spends nothing.

    The predictions are written as CSV while the file is read, one row per point, after the columns that the
    model uses. An output file is created at the end, and only if all points were predicted.

    hushsum predict ill.hush visits.csv -o answers.csv
    """
    if output != STANDARD:
        check_answers_output(output, inputs=[model, points])
    answer = partial(predict_file, model, replace(records, paths=(points,)))
    write_answers(answer, points, output, as_json=json)


def sample(
    file: options.ReleasedFile,
    number: int = typer.Option(1000, "--number", "-n", help="How many records to draw."),
    output: str = setting("-", "The file to write: .parquet, .arrow, or else CSV; - is standard output."),
    seed: int | None = setting(None, "Repeats the same sample."),
    json: bool = setting(False, "Write JSON instead of CSV."),
) -> None:
    """Draw synthetic records from a released function, density, sampler or synthesizer. This spends nothing.

    The records lie inside the declared bounds, where the released function stands out of its noise. They are
    computed from the public file alone, so they may be published.

    hushsum sample town.hush -n 5000 -o synthetic.csv
    """
    if output != STANDARD:
        check_answers_output(output, inputs=[file])
    table = sample_release(file, number, seed=seed)
    if not json and output.lower().endswith((*PARQUET, *ARROW)):
        write_arrow_table(table, output)
        return
    columns, text = table.to_pydict(), io.StringIO()
    records = [list(each) for each in zip(*columns.values(), strict=True)]
    if json:
        found = {"columns": list(columns), "records": records}
        text.write(json_format.dumps(found, allow_nan=False) + "\n")
    else:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        # Numbers have the digits that float32 holds, and missing values are empty cells.
        writer.writerows(
            [f"{each:.7g}" if isinstance(each, float) else each for each in row] for row in records
        )
    with reader_may_leave(), results_to(output) as stream:
        stream.write(text.getvalue().encode())
        stream.flush()


_MOST_NUMBERS: Final = 64


def show(
    file: str = typer.Argument(help="A .hush or .tally file; - reads a .hush file from standard input."),
    json: options.Json = False,
) -> None:
    """Describe a file and its claim. For a tally only the public header is shown.

    hushsum show skin.hush
    """
    description = describe_file(file)
    if isinstance(description, FunctionDescription):
        warn_if_insecure(description.function.claim)
    elif isinstance(description, ModelDescription):
        warn_if_insecure(description.bundle.claim)
    if json:
        write_json(description.as_json())
    elif isinstance(description, FunctionDescription):
        about = description.function.describe()
        write(about.claim.sentence() + "\n")
        size = [] if description.size is None else [("size", bytes_in_words(description.size))]
        write_facts([*about.facts(), *size])
    elif isinstance(description, ModelDescription):
        _write_model(description)
    else:
        write(description.as_json()["warning"] + "\n")
        write_tally(description)


def _write_model(description: ModelDescription) -> None:
    described = description.as_json()
    write(description.bundle.claim.sentence() + "\n")
    declared = described["parameters"] or {}
    parameters = {name: value for name, value in declared.items() if name not in ("bounds", "columns")}
    changed = [f"{name} {_in_short(value)}" for name, value in parameters.items()]
    facts = [
        ("model", str(described["model"])),
        ("claim", repr(description.bundle.claim)),
        ("parameters", ", ".join(changed)),
        ("columns", "not named" if described["columns"] is None else names_in_words(described["columns"])),
    ]
    if described["kernels"]:
        facts.append(("kernel", "; ".join(described["kernels"])))
    # The bounds of declared columns are in their declarations.
    if described["bounds"] is not None and not declared.get("columns"):
        facts.append(("bounds", _bounds(described["bounds"])))
    mechanism = description.bundle.claim
    facts.append(("mechanism", f"{mechanism.mechanism}, {mechanism.arithmetic}"))
    if described["classes"] is not None:
        facts.append(("classes", names_in_words([str(each) for each in described["classes"]])))
    facts.append(("released", names_in_words([*described["parts"], *described["arrays"]])))
    errors = description.expected_errors
    columns = described["columns"]
    for name, values in description.bundle.arrays.items():
        label = name.replace("_", " ")
        if name == "expected_errors" and errors:
            facts.append((label, _errors(errors)))
        elif values.size <= _MOST_NUMBERS:
            if columns is not None and values.ndim == 2 and values.shape[1] == len(columns):
                label += f" ({names_in_words(columns)})"
            facts.append((label, "; ".join(_row(row) for row in values)))
    facts.append(("producer", described["producer"]))
    if description.size is not None:
        facts.append(("size", bytes_in_words(description.size)))
    write_facts(facts)


def _errors(errors: dict[tuple[str, ...], float]) -> str:
    """The expected errors of the tables of a synthesizer, by their columns; of many only the largest pair."""
    shown = dict(errors)
    left_out = ""
    if len(errors) > _MOST_NUMBERS:
        largest = max((names for names in errors if len(names) > 1), key=errors.__getitem__)
        shown = {names: error for names, error in errors.items() if len(names) == 1 or names == largest}
        left_out = f"; {len(errors) - len(shown)} further pairs have smaller ones, which --json lists"
    listed = ", ".join(f"{' × '.join(names)} {100 * error:.2g} %" for names, error in shown.items())
    return f"{listed} of the records in a wrong cell{left_out}"


def _bounds(declared: Any) -> str:
    """Bounds as they were given: one pair, a list of them, or a dictionary."""
    if isinstance(declared, dict):
        return names_in_words([f"{name} {low:g}:{high:g}" for name, (low, high) in declared.items()])
    pairs = [declared] if not isinstance(declared[0], list | tuple) else declared
    return names_in_words([f"{low:g}:{high:g}" for low, high in pairs])


def _row(row: Any) -> str:
    """A number, or the numbers of a point."""
    return ", ".join(short(float(each)) for each in row.reshape(-1)) if row.ndim else short(float(row))


def _in_short(value: object) -> str:
    """A parameter on one line; a long list by its length."""
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 or not isinstance(value, list | dict) else f"of {len(value)}"


def compare(
    first: str = typer.Argument(metavar="FIRST", help="A .hush file with a released function, or -."),
    second: str = typer.Argument(metavar="SECOND", help="Another released function, of other records."),
    at: list[str] | None = typer.Option(
        None,
        metavar="POINT",
        help="A public point to compare at, such as 120,80,60; repeat it. Default: chosen points.",
    ),
    significance: float = setting(0.05, "Level of the test.", metavar="NUMBER"),
    cluster_size: float = setting(
        1.0, "Average number of correlated records, such as those of one person.", metavar="NUMBER"
    ),
    output: str | None = setting(None, "Draw the difference to this file: .png, .svg or .pdf."),
    sum: bool = setting(False, "Kernel sums f(q), instead of mean kernel values f(q)/N."),
    json: options.Json = False,
) -> None:
    """Compare two released functions: where they differ, MMD², and a two-sample test. Spends nothing.

    The test allows for the noise of both releases and for the sampling error of both sets of records. To
    compare methods on public data, see hushsum benchmark.

    hushsum compare spring.hush autumn.hush -o difference.png
    """
    if first == second == STANDARD:
        raise UsageError("second", ("and ", Parameter("first"), " cannot both be standard input"), got="-")
    if output is not None:
        check_format(check_output(output, inputs=[first, second]))
    f, g = map(open_function, (first, second))
    names = tuple(Path(each).stem or each for each in (first, second))
    places = None if at is None else [options.point(each, "at") for each in at]
    shown = names if names[0] != names[1] else (first, second)
    found = run(f, g, at=places, significance=significance, cluster_size=cluster_size, names=shown)
    if output is not None:
        save_figure(found.picture(found.view(of="sum" if sum else "mean")).figure(), output)
    write_result({**found.as_json(), "output": output}, found.describe(), as_json=json)
    if output is not None and not json:
        tell(output)


def plot(
    file: options.ReleasedFile,
    output: str = required("The image to write: .png, .svg or .pdf."),
    range: str | None = setting(
        None, "Range to plot; default: the declared bounds.", metavar="LOW:HIGH[,...]"
    ),
    axes: str | None = setting(
        None,
        "Columns to draw, numbers from 0 or names, the first across; default: the first two.",
        metavar="I[,J]",
    ),
    at: tuple[float, ...] | None = setting(
        None,
        "Values of the other columns, or one for all; default: the middle of the bounds.",
        metavar="VALUES",
    ),
    labels: tuple[str, ...] | None = setting(None, "Names of the axes.", metavar="NAMES"),
    *,
    terms: Annotated[
        QueryTerms,
        Without("estimator", "threads"),
        Reworded({"simultaneous": "Intervals that hold at all points together; the default for heat maps."}),
    ],
    pointwise: bool = setting(False, "Intervals that hold at each point; the default for curves."),
    log: bool = setting(False, "Logarithmic colours of a heat map."),
    dates: Annotated[
        DateFormat,
        Without("date_format"),
        Reworded(
            {"dates": "Columns that were dates: their axes have dates along them, and ranges may be dates."},
            listed=True,
        ),
    ],
    json: options.Json = False,
) -> None:
    """Draw a function or a model: a curve with its error band, a heat map, or a slice of more columns.

    Of a classifier the probabilities of its classes are drawn, or where each is predicted; of other models
    what they predict.

    hushsum plot skin.hush -o skin.png
    """
    if terms.simultaneous and pointwise:
        raise UsageError("simultaneous", ("and ", Parameter("pointwise"), " exclude each other"))
    written = dates if dates.columns else None
    view = plot_function(
        file,
        output,
        axes=_columns(axes),
        range=options.ranges(range, "range", written),
        at=at,
        labels=labels,
        of=terms.of,
        level=terms.level,
        simultaneous=terms.simultaneous if terms.simultaneous or pointwise else None,
        log=log,
        dates=written,
    )
    write_result({"output": output, **view.as_json()}, output, as_json=json)


def _columns(text: str | None) -> tuple[int | str, ...] | None:
    """Columns by their numbers or names."""
    names = options.names(text, "axes")
    return None if names is None else tuple(int(name) if name.isdecimal() else name for name in names)


def page(
    function: str = typer.Argument(metavar="FILE", help="A .hush file: a function or a model."),
    output: str = required("The page to write: .html."),
    title: str | None = setting(None, "Title of the page; default: the name of the file."),
    range: str | None = setting(
        None, "What to draw of each column; default: the declared bounds.", metavar="LOW:HIGH[,...]"
    ),
    labels: tuple[str, ...] | None = setting(None, "Names of the columns.", metavar="NAMES"),
    mean: bool = setting(False, "Show the share of all records first, not the number near a point."),
    json: options.Json = False,
) -> None:
    """Write one HTML file that shows a released function and answers queries offline, in any browser.

    It contains the function and its reader and loads nothing from anywhere.

    hushsum page skin.hush -o skin.html
    """
    check_answers_output(output, inputs=[] if function == STANDARD else [function])
    ranges, of = options.ranges(range, "range"), "mean" if mean else "sum"
    size = write_page(function, output, title=title, range=ranges, labels=labels, of=of)
    write_result({"output": output, "bytes": size}, output, as_json=json)


def audit(
    file: str | None = typer.Argument(
        None, help="A .hush file; - is standard input. Without one, all mechanisms are audited."
    ),
    thorough: bool = setting(False, "More neighbours, noise levels and releases: minutes, not seconds."),
    json: options.Json = False,
) -> None:
    """Test claims statistically, and report the power of each test.

    Uses synthetic data and the public header of a file; it reads no private data and spends nothing. The exit
    code is 1 if a claim is broken or could not be tested.

    hushsum audit skin.hush
    """
    with progress_bar("auditing") as progress:
        report = audit_file(file, thorough=thorough, progress=progress)
    if json:
        write_json({"holds": report.holds, "sentence": report.sentence(), "rows": report.as_dicts()})
    else:
        head, rows = report.table()
        write_table(head, rows, left=3)
        if report.holds:
            write(report.sentence().capitalize() + ".")
    if not report.holds:
        tell(f"hushsum: {report.sentence()}")
        raise typer.Exit(1)
