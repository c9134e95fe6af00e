"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer


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
DateUnit = Annotated[
    str,
    typer.Option(
        "--date-unit",
        metavar="UNIT",
        help="Dates are seconds, minutes, hours, days, weeks or years since --date-origin.",
    ),
]
DateOrigin = Annotated[str, typer.Option("--date-origin", metavar="DATE", help="The date that is 0.")]
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
RelationName = Annotated[
    str,
    typer.Option(
        "--relation",
        help="add/remove: the number of records is private; replace: it is public.",
        autocompletion=completing("add/remove", "replace"),
    ),
]
DatasetName = Annotated[str | None, typer.Option("--dataset", help="Name of the dataset in the ledger.")]
Ledger = Annotated[
    str, typer.Option("--ledger", metavar="PATH|URL", help="Ledger: a file, or a PostgreSQL URL.")
]
Dataset = Annotated[str, typer.Option("--dataset", help="Name of the dataset in the ledger.")]

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
Population = Annotated[
    int | None, typer.Option("--population", help="Declared number of records or persons, for the rule on δ.")
]
AllowLargeDelta = Annotated[
    bool, typer.Option("--allow-large-delta", help="Accept a δ of 1/(10 × population) or more.")
]
Listen = Annotated[
    str,
    typer.Option(
        "--listen", metavar="HOST:PORT", help="Address and port to listen on; port 0: any free port."
    ),
]
