"""``hushsum fit`` and ``hushsum synthesize``: what spends budget on models."""

from __future__ import annotations

import inspect
import json as json_format
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hushsum.declaration import ANY, Parameter, required, setting
from hushsum.errors import FilePath, UsageError
from hushsum.operations import LedgerOptions, RecordFiles, TrainingFiles
from hushsum.records import DeclaredColumn, column_from_json, names_in_words

from . import options
from .declared_options import Reworded, Without, option_name
from .output import counting, reader_may_leave, refused_strictly, tell, warn, warnings_printed
from .parser import Command
from .release_report import Confirmation, released_file

_GIVEN = "hushsum.model_options"


def _models() -> list[str]:
    from hushsum.operations.models import model_names

    return model_names()


def fit(
    context: typer.Context,
    *,
    model: str = typer.Argument(
        help="The kind of model, such as classifier, density or outliers; hushsum fit MODEL --help lists its "
        "options.",
        autocompletion=options.completing(_models),
    ),
    files: options.RecordFiles,
    output: options.ReleaseOutput,
    records: Annotated[
        TrainingFiles,
        Without("set_column"),
        Reworded(
            {"bounds": "Declared range of all columns, or of each; default: -1:1. Records are clipped to it."}
        ),
    ],
    ledger: LedgerOptions,
    epsilon: float = required("ε of the release."),
    delta: float | None = setting(None, "δ; default: that of the model, shown in the claim."),
    public: str | None = setting(
        None,
        "Public rows with these columns: they decide bounds, and what else a model leaves to them, "
        "where that is not given. The claim states that they were assumed to be public.",
        metavar="FILE",
    ),
    seed: int | None = setting(None, "Public seed of the hash functions; default: random."),
    yes: options.Yes = False,
    strict: options.Strict = False,
    allow_clipping: options.AllowClipping = False,
    json: options.Json = False,
) -> None:
    """Fit a model to private records and write a public file. This spends budget and cannot be undone.

    The records are counted in one pass; then the claim is shown, and on a terminal the command requests
    confirmation. A classifier without --classes assumes that the labels in the data are public; the claim
    lists this assumption. With --ledger the dataset's budget is debited first, and repeating the same command
    after a crash resumes the release instead of spending again.

    classifier and linear-svc predict a group, regressor and gaussian-process a number; density and histogram
    say how records are spread, kmeans and mixture which groups they form, modes where they crowd, neighbors
    how many are near a point, outliers which points are unlike the records; sampler and synthesizer draw
    synthetic records; kernel-svc separates groups by curves.

    Each model has its own options; hushsum fit classifier --help lists them.

    hushsum fit classifier visits.parquet --target ill --classes no,yes --epsilon 1 -o ill.hush
    """
    from hushsum.operations.models import ModelChoice, count_model, release_model

    path_or_file = released_file(output, json=json)
    given = {
        "epsilon": epsilon,
        "delta": delta,
        "bounds": records.bounds,
        "max_per_unit": records.max_per_unit,
        "random_state": seed,
    }
    stated = {name: value for name, value in given.items() if value is not None}
    training = replace(records, paths=tuple(files), public=records.public_file(public))
    confirmation = Confirmation(output, yes=yes, of_model=True)
    with counting(files, allow_clipping=allow_clipping, strict=strict) as progress:
        counted = count_model(
            ModelChoice(model, {**stated, **context.meta[_GIVEN]}),
            training,
            confirmation.destination(path_or_file, ledger),
            progress=progress,
        )
    for assumed in counted.choice.assumed():
        if strict:
            raise refused_strictly(_ASSUMED[assumed])
        warn(_ASSUMED[assumed])
    for sentence in counted.model.advice():
        tell(f"Note: {sentence}.")
    with reader_may_leave(), warnings_printed(strict=strict):
        released = release_model(counted)
    about = released.function.about
    facts = [
        ("model", str(about["model"])),
        ("columns", names_in_words(about["feature_names"])),
        ("claim", repr(released.claim)),
    ]
    confirmation.report(released, facts, json=json)


_ASSUMED = {
    "bounds": "--bounds are not given: every column is taken to lie within -1:1, and clipped to that.",
    "target_bounds": "--target-bounds are not given: the target is taken to lie within -1:1, and clipped to "
    "that.",
    "delta": "--delta is not given: the claim has this model's default δ and is not pure ε.",
    "inputs": "--inputs is not given: the inputs are taken to be public, and only the target is protected.",
}


class FitCommand(Command):
    """``hushsum fit``: once the model is known, its parameters are options of the command and of its help.

    The models are imported when the command runs, and not before: scikit-learn takes a second to import.
    """

    _declared: tuple[Parameter, ...] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Look for the model among the arguments first."""
        from hushsum.operations.models import model_kind, model_names

        names = model_names()
        model = next((each for each in args if each in names), None)
        settings = () if model is None else model_kind(model).settings
        self._declared = tuple(each for each in settings if each.type != ANY)
        self.epilog = f"Models: {', '.join(names)}. Each has options of its own: hushsum fit MODEL --help"
        ctx.meta[_GIVEN] = {}
        found: list[str] = super().parse_args(ctx, args)
        return found

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of every model, and the options of the named model."""
        shared = super().get_params(ctx)
        return [*shared[:-1], *_options(self._declared), shared[-1]]


def _options(declared: Sequence[Parameter]) -> list[Any]:
    """Typer's own options for the parameters: those of a command whose signature is made of them."""

    def own(**_: object) -> None:
        """Never called: its signature alone is used."""

    kind = inspect.Parameter.KEYWORD_ONLY
    listed = [
        inspect.Parameter(f"model_{each.name}", kind, default=None, annotation=_hint(each))
        for each in declared
    ]
    own.__annotations__ = {each.name: each.annotation for each in listed}
    vars(own)["__signature__"] = inspect.Signature(listed)
    app = typer.Typer(add_completion=False)
    app.command()(own)
    made: Any = typer.main.get_command(app)
    return list(made.params)


def _hint(each: Parameter) -> Any:
    def keep(context: typer.Context, text: str | None) -> None:
        if text is not None:
            context.meta[_GIVEN][each.name] = read_option(each, text)

    rule = each.rule(none=False)
    one = {"number": "NUMBER", "integer": "INTEGER", "pair": "LOW:HIGH"}.get(each.type, "TEXT")
    default = f" Default: {each.default}." if each.default is not None else ""
    option = typer.Option(
        option_name(each),
        callback=keep,
        expose_value=False,
        metavar=f"{one}[,...]" if each.several else one,
        help=f"{each.help} {rule[:1].upper()}{rule[1:]}.{default}",
        rich_help_panel="Options of this model",
    )
    return Annotated[str | None, option]


def read_option(each: Parameter, text: str) -> Any:
    """A parameter as it is typed, checked by its declaration.

    >>> from hushsum.models import PrivateDensity
    >>> bandwidth = next(each for each in PrivateDensity.PARAMETERS if each.name == "bandwidth")
    >>> read_option(bandwidth, "0.1,0.5")
    [0.1, 0.5]

    Raises
    ------
    UsageError
        if it is not what the declaration allows.
    """
    if each.type == "pair":
        pairs = options.ranges(text, option_name(each))
        value: Any = tuple(pairs[0]) if pairs is not None and len(pairs) == 1 else text
    else:
        parts = [_number_or_text(part.strip()) for part in text.split(",")]
        value = parts if each.several and len(parts) > 1 else parts[0] if len(parts) == 1 else text
    each.check(value, none=False)
    return value


def _number_or_text(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def synthesize(
    *,
    files: list[str] = typer.Argument(
        metavar="FILE...",
        help="Private records with these columns: CSV, Parquet, Arrow or a workbook; - reads CSV from "
        "standard input.",
    ),
    output: str = required("The synthetic table, by its suffix: .parquet, .arrow or .csv."),
    records: Annotated[
        RecordFiles,
        Without(*("columns", "bounds", "set_column"), *("dates", "date_format", "date_unit", "date_origin")),
    ],
    ledger: LedgerOptions,
    epsilon: float = required("ε of the release."),
    delta: float | None = setting(None, "δ; with it the noise is smaller. Without it the claim is pure ε."),
    declare: str | None = setting(
        None, "JSON file with a declaration of each column, by its name.", metavar="FILE"
    ),
    number: list[str] | None = typer.Option(
        None,
        metavar="NAME=LOW:HIGH[:BINS][:whole]",
        help="A column of numbers, drawn as whole ones if so declared; may be repeated.",
    ),
    category: list[str] | None = typer.Option(
        None, metavar="NAME=A,B,...", help="A column of categories; may be repeated."
    ),
    flag: list[str] | None = typer.Option(
        None, metavar="NAME", help="A column of true and false; may be repeated."
    ),
    date: list[str] | None = typer.Option(
        None, metavar="NAME=FIRST:LAST[:BINS]", help="A column of ISO dates; may be repeated."
    ),
    marginals: str = setting("auto", "Pairs to release: all, tree (chosen privately), or auto."),
    rows: int | None = setting(None, "How many records to draw; default: the released number.", at_least=1),
    model: str | None = setting(None, "Where to keep the model; default: beside the table.", metavar="FILE"),
    seed: int | None = setting(None, "Public seed of the fit and the draws; default: random."),
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Make a synthetic table of private records. This spends privacy budget and cannot be undone.

    Columns are declared in a file, {"age": {"kind": "numbers", "low": 0, "high": 120, "bins": 24}, "sex":
    {"kind": "categories", "values": ["f", "m"]}}, or by options. Types of the table follow from the
    declarations. The model is kept as a .hush file: hushsum sample draws further tables from it, which spends
    nothing.

    hushsum synthesize visits.parquet --number age=0:120:24:whole --category sex=f,m --epsilon 1 \
--delta 1e-6 -o synthetic.parquet
    """
    from hushsum.operations.models import MODEL
    from hushsum.operations.models import synthesize as run

    found = [] if declare is None else list(_read_declarations(declare).items())
    found += map(declared_numbers, number or [])
    found += map(declared_categories, category or [])
    found += [(each, column_from_json({"kind": "flag"})) for each in flag or []]
    found += map(declared_dates, date or [])
    if not found or len(dict(found)) != len(found):
        got = "none" if not found else "one of them twice"
        remedy = "give a file of declarations, or an option for each column"
        raise UsageError("columns", "must be declared, each once", got=got, remedy=remedy)
    given = {
        "epsilon": epsilon,
        "delta": delta,
        "marginals": marginals,
        "max_per_unit": records.max_per_unit,
        "random_state": seed,
    }
    confirmation = Confirmation(output, yes=yes, of_model=True)
    with warnings_printed():
        made = run(
            replace(records, paths=tuple(files)),
            output,
            confirmation.destination(model or str(Path(output).with_suffix(MODEL)), ledger),
            dict(found),
            {name: value for name, value in given.items() if value is not None},
            rows=rows,
            seed=seed,
        )
    facts = [
        ("table", made.output),
        ("rows", str(made.rows)),
        ("expected error", f"{made.expected_error:.3g} total variation per pair of columns, on average"),
        ("claim", repr(made.released.claim)),
    ]
    confirmation.report(made.released, facts, json=json, result=made)


def _read_declarations(path: str) -> dict[str, DeclaredColumn]:
    """The declarations of a JSON file: an object by column name.

    Raises
    ------
    UsageError
        There is no such file, it is not JSON, or a declaration breaks a rule.
    """
    try:
        data = json_format.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError):
        data = None
    if not isinstance(data, dict) or not data:
        rule = (FilePath(path, quoted=True), " must be a JSON object with a declaration of each column")
        remedy = 'write for example {"age": {"kind": "numbers", "low": 0, "high": 120}}'
        raise UsageError(rule, got="something else", remedy=remedy)
    return {name: column_from_json(each) for name, each in data.items()}


def declared_numbers(text: str) -> tuple[str, DeclaredColumn]:
    """``NAME=LOW:HIGH[:BINS][:whole]``; a missing number is a label of its own.

    >>> name, column = declared_numbers("age=0:120:12:whole")
    >>> name, column.parts, column.whole
    ('age', 12, True)
    """
    name, _, rest = text.partition("=")
    parts = rest.split(":")
    whole = parts[-1] == "whole"
    if whole:
        parts.pop()
    try:
        low, high = float(parts[0]), float(parts[1])
        bins = int(parts[2]) if len(parts) == 3 else 16
        if not name or len(parts) > 3:
            raise ValueError
    except (ValueError, IndexError):
        rule = "must be NAME=LOW:HIGH, NAME=LOW:HIGH:BINS, or one of these with :whole at the end"
        remedy = "write for example age=0:120:12:whole"
        raise UsageError("number", rule, got="something else", remedy=remedy) from None
    declared = {"low": low, "high": high, "fill": low, "bins": bins, "whole": whole}
    return name, column_from_json({"kind": "numbers", **declared})


def declared_categories(text: str) -> tuple[str, DeclaredColumn]:
    """``NAME=A,B,C``: texts, or numbers where all of them are; others count as "other".

    >>> declared_categories("ward=2,3")[1].values
    (2, 3)
    """
    name, _, rest = text.partition("=")
    values: list[Any] = rest.split(",")
    if not name or not all(values):
        rule = "must be NAME=VALUE,VALUE,..."
        raise UsageError("category", rule, got="something else", remedy="write for example sex=f,m")
    with suppress(ValueError):
        values = [int(each) for each in values]
    return name, column_from_json({"kind": "categories", "values": values, "unknown": "other"})


def declared_dates(text: str) -> tuple[str, DeclaredColumn]:
    """``NAME=FIRST:LAST[:BINS]`` in ISO dates; a missing date is a label of its own.

    >>> declared_dates("hired=2015-01-01:2024-12-31:10")[1].size
    11
    """
    name, _, rest = text.partition("=")
    parts = rest.split(":")
    if not name or not 2 <= len(parts) <= 3 or (len(parts) == 3 and not parts[2].isdecimal()):
        rule = "must be NAME=FIRST:LAST or NAME=FIRST:LAST:BINS"
        remedy = "such as hired=2015-01-01:2024-12-31"
        raise UsageError("date", rule, got="something else", remedy=remedy)
    bins = int(parts[2]) if len(parts) == 3 else 12
    return name, column_from_json({"kind": "dates", "low": parts[0], "high": parts[1], "bins": bins})
