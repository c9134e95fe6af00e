"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.errors import Parameter, UsageError

if TYPE_CHECKING:
    from hushsum.jobs.deliver_release import LedgerOptions


def kernel_completions(incomplete: str) -> list[str]:
    """The registered kernels, for a shell; imported only when it completes a command."""
    from hushsum.kernels import kernel_names

    return completing(*kernel_names())(incomplete)


def tally_completions(incomplete: str) -> list[str]:
    """The methods that count in a tally, for a shell."""
    from hushsum.methods import tally_methods

    return completing(*tally_methods())(incomplete)


def plan_completions(incomplete: str) -> list[str]:
    """The methods that count in a tally and whose error is predicted, for a shell."""
    from hushsum.methods import planned_methods
    from hushsum.methods.registry import tally_methods

    return completing("auto", *sorted({*planned_methods()} & {*tally_methods()}))(incomplete)


def completing(*choices: str) -> Callable[[str], list[str]]:
    """What a shell completes a value to."""
    return lambda incomplete: [each for each in choices if each.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
EncryptionKeyFile = Annotated[
    str | None,
    typer.Option(
        "--encryption-key-file",
        metavar="PATH",
        help="Key of encrypted tallies: 32 bytes, or 64 hexadecimal digits.",
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Default: all cores. The result does not depend on it.")
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="race: kernels with hash functions; grid: 1 to 4 columns, needs --bounds; fourier_features: "
        "gaussian, laplacian, matern; or another that counts in a tally. [default: the first of these that "
        "takes the kernel]",
        autocompletion=tally_completions,
    ),
]
PlannedMethod = Annotated[
    str,
    typer.Option(
        "--method",
        help="auto compares all methods that can release the kernel; or one of them.",
        autocompletion=plan_completions,
    ),
]
BoundsText = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="LOW:HIGH[,...]",
        help="Declared range of all columns, or of each; records are clipped to it.",
    ),
]
Spacing = Annotated[
    float | None,
    typer.Option("--spacing", help="Distance between grid nodes, in bandwidths. [default: 0.75]"),
]
Degree = Annotated[
    int | None,
    typer.Option("--degree", help="Degree of the weights on a grid, 2 to 5. [default: by columns]"),
]
StepsText = Annotated[
    str | None,
    typer.Option(
        "--steps",
        metavar="STEP[,...]",
        help="Grid nodes on values: the step of all columns, or of each; 0 for none.",
    ),
]
Features = Annotated[
    int | None,
    typer.Option("--features", help="Number of random frequencies of fourier_features. [default: 4000]"),
]
Groups = Annotated[
    int | None,
    typer.Option(
        "--groups",
        help="Groups of fourier_features, of which a record is counted in one: less time, more noise. "
        "[default: 1]",
    ),
]
Structured = Annotated[
    bool | None,
    typer.Option(
        "--structured", help="Frequencies of fourier_features by fast transforms, for many columns."
    ),
]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="gaussian, laplacian, matern, euclidean, manhattan, angular, jaccard or hamming; or several, "
        "with their columns: 'euclidean(age, bandwidth=10) * hamming(town)'. [default: gaussian; where hash "
        "rows are requested, euclidean; for sets, jaccard]",
        autocompletion=kernel_completions,
    ),
]
Bandwidth = Annotated[
    float | None,
    typer.Option(
        "--bandwidth",
        help="How near records must be to count as similar; chosen without looking at them.",
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="units|bounds",
        help="What --bandwidth is measured in: the units of the data, or the declared range of each column, "
        "of which it is then a fraction. [default: bounds if the ranges differ by more than 10 times]",
        autocompletion=completing("units", "bounds"),
    ),
]
Smoothness = Annotated[
    float | None,
    typer.Option("--smoothness", help="Smoothness of the matern kernel: 0.5, 1.5 or 2.5. [default: 1.5]"),
]
Power = Annotated[
    int | None, typer.Option("--power", help="Power of the similarity; a larger power decreases faster.")
]
Radius = Annotated[
    float | None,
    typer.Option(
        "--radius",
        help="Of the dot-product and polynomial kernels: longer records are shortened to it. [default: 1]",
    ),
]
Bits = Annotated[int | None, typer.Option("--bits", help="Sign bits of the angular kernel.")]
Projection = Annotated[
    str | None,
    typer.Option(
        "--projection",
        help="dense, or structured: faster from about 512 columns on.",
        autocompletion=completing("dense", "structured"),
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="NAMES", help="Columns of a record, separated by commas; default: all."
    ),
]
Decimal = Annotated[
    str,
    typer.Option("--decimal", metavar="SIGN", help="Decimal sign of numbers in CSV files: . or a comma."),
]
Encoding = Annotated[
    str,
    typer.Option("--encoding", metavar="NAME", help="Encoding of CSV files, such as windows-1252 or utf-16."),
]
DropMissing = Annotated[
    bool,
    typer.Option("--drop-missing", help="Leave out records with a missing value, instead of refusing them."),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="MARKERS",
        help="Cells that stand for a missing value, such as k.A.,999, beside empty ones, NA and the like.",
    ),
]
Dates = Annotated[
    str | None,
    typer.Option(
        "--dates", metavar="NAMES", help="Columns of dates, which become numbers; ranges may be dates too."
    ),
]
DatePattern = Annotated[
    str | None,
    typer.Option("--date-format", metavar="FORMAT", help="Such as %d.%m.%Y. [default: 2024-05-31]"),
]
DateUnit = Annotated[
    str,
    typer.Option(
        "--date-unit",
        metavar="UNIT",
        help="Dates are seconds, minutes, hours, days, weeks or years since --date-origin.",
    ),
]
DateOrigin = Annotated[str, typer.Option("--date-origin", metavar="DATE", help="The date that is 0.")]
Sheet = Annotated[
    str | None, typer.Option("--sheet", metavar="NAME", help="Sheet of a workbook. [default: the first]")
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Stop at the first warning, before anything is spent."),
]
AllowClipping = Annotated[
    bool,
    typer.Option(
        "--allow-clipping",
        help="Continue with a warning where most records lie outside the bounds. [default: stop, before "
        "anything is spent]",
    ),
]
SetColumn = Annotated[
    str | None,
    typer.Option("--set-column", metavar="NAME", help="Column of sets (jaccard): lists of integers."),
]
Edges = Annotated[
    str | None,
    typer.Option(
        "--edges",
        metavar="NAMES",
        help="The two columns of an edge list, such as src,dst, or 1,2 in a text file: records are the nodes "
        "(jaccard).",
    ),
]
Directed = Annotated[
    bool, typer.Option("--directed", help="A node's neighbours are those that its edges lead to.")
]
Level = Annotated[float, typer.Option("--level", help="Level of the intervals.")]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Intervals that hold at all points together, not at each.")
]
Sum = Annotated[bool, typer.Option("--sum", help="Kernel sums f(q), instead of mean kernel values f(q)/N.")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="ε; pure unless --delta is given.")]
Delta = Annotated[float | None, typer.Option("--delta", help="δ, below 1/(10 × number of units).")]
Rho = Annotated[
    float | None,
    typer.Option("--rho", help="ρ of zero-concentrated differential privacy, instead of ε and δ."),
]
CountShare = Annotated[
    float, typer.Option("--count-share", help="Fraction of the budget for the noisy count.")
]
RelationName = Annotated[
    str,
    typer.Option(
        "--relation",
        help="add/remove: the number of records is private; replace: it is public.",
        autocompletion=completing("add/remove", "replace"),
    ),
]
UnitName = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="Unit of the claim for a graph: 'adjacency row', 'edge' or 'directed edge', as it was counted.",
        autocompletion=completing("adjacency row", "edge", "directed edge"),
    ),
]
LedgerPlace = Annotated[
    str | None,
    typer.Option("--ledger", metavar="PATH|URL", help="Ledger: a file, or a PostgreSQL URL."),
]
DatasetName = Annotated[str | None, typer.Option("--dataset", help="Name of the dataset in the ledger.")]
Ledger = Annotated[
    str, typer.Option("--ledger", metavar="PATH|URL", help="Ledger: a file, or a PostgreSQL URL.")
]
Dataset = Annotated[str, typer.Option("--dataset", help="Name of the dataset in the ledger.")]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key", help="Name of this release in the ledger, so that a retry does not spend again."
    ),
]
Recipient = Annotated[str | None, typer.Option("--to", help="Recipient, recorded in the ledger.")]
PartName = Annotated[
    str | None,
    typer.Option("--part", help="Declared part of the dataset to which the records belong, for the ledger."),
]

RecordFiles = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="CSV, Parquet or Arrow; - reads CSV from standard input."),
]
ReleasedFile = Annotated[str, typer.Argument(metavar="HUSH", help="The .hush file; - is standard input.")]
ReleaseOutput = Annotated[
    str, typer.Option("--output", "-o", help="The .hush file to write; - is standard output.")
]
TallyOutput = Annotated[str, typer.Option("--output", "-o", help="The .tally file to write.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not request confirmation.")]
InsecureNoiseSeed = Annotated[int | None, typer.Option("--insecure-noise-seed", hidden=True)]
UnitColumn = Annotated[
    str | None,
    typer.Option(
        "--unit-column", metavar="NAME", help="Column with the id of the person; the unit is then the person."
    ),
]
MaxPerUnit = Annotated[
    int | None, typer.Option("--max-per-unit", help="Count at most this many records per person.")
]
Population = Annotated[
    int | None, typer.Option("--population", help="Declared number of records or persons, for the rule on δ.")
]
AllowLargeDelta = Annotated[
    bool, typer.Option("--allow-large-delta", help="Accept a δ of 1/(10 × population) or more.")
]
RunDelta = Annotated[float, typer.Option("--delta", help="δ, below 1/(10 × number of records).")]
RunBandwidth = Annotated[
    float, typer.Option("--bandwidth", help="Scale of the Gaussian kernel in the units of the data; public.")
]
RunFeatures = Annotated[int, typer.Option("--features", help="Number of random frequencies.")]
ComparedColumns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="NAMES", help="Columns that are compared, separated by commas; default: all."
    ),
]


def ledger_options(
    ledger: str | None,
    dataset: str | None,
    idempotency_key: str | None = None,
    to: str | None = None,
    part: str | None = None,
) -> LedgerOptions | None:
    """Where the release is recorded; None without a ledger.

    Raises
    ------
    UsageError
        if only some of the options are given.
    """
    if (ledger is None) != (dataset is None):
        raise UsageError(
            parameter="ledger",
            rule=("and ", Parameter("dataset"), " go together"),
            got="one of them",
            remedy="give both",
        )
    if ledger is None or dataset is None:
        if any(each is not None for each in (idempotency_key, to, part)):
            raise UsageError(
                rule=(
                    Parameter("idempotency_key"),
                    ", ",
                    Parameter("to"),
                    " and ",
                    Parameter("part"),
                    " are for a ledger",
                ),
                got="none",
                remedy=("give ", Parameter("ledger"), " and ", Parameter("dataset")),
            )
        return None
    from hushsum.jobs.deliver_release import LedgerOptions

    return LedgerOptions(ledger, dataset, idempotency_key, to, part)
