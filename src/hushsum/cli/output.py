"""Results on standard output, everything else on standard error; sizes and numbers as people read them."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from hushsum.errors import (
    PublicAssumption,
    RepeatedRecords,
    RepeatedSpending,
    SuspiciousParameter,
    UsageError,
)
from hushsum.files import atomic_file
from hushsum.operations import STANDARD, AnsweredPoints, Progress
from hushsum.privacy import Claim
from hushsum.records import clipping_allowed

from .interrupts import exit_if_interrupted, interruptible_input

if TYPE_CHECKING:
    from rich.console import Console, ConsoleRenderable
    from rich.progress import Progress as Bar

# As a shell reports a program that SIGPIPE ended: the reader had enough, which is not an error.
BROKEN_PIPE = 141

_WIDEST = 1000
_SECONDS_OF_A_LINE = 20.0
# The progress bars that are on the screen.
_bars: list[Bar] = []


def write(text: str) -> None:
    """Print a line of the result."""
    with reader_may_leave():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def as_text(value: object) -> str:
    """JSON as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def write_json(value: object) -> None:
    """Print the result as JSON."""
    write(as_text(value))


def write_result(
    result: Any, text: str | Iterable[tuple[str, str]], *, as_json: bool, claim: Claim | None = None
) -> None:
    """Print a result: as JSON, or else as a line, or labels and values below the sentence of a claim."""
    if as_json:
        write_json(result.as_json() if hasattr(result, "as_json") else result)
        return
    if claim is not None:
        write(claim.sentence() + "\n")
    if isinstance(text, str):
        write(text)
    else:
        write_facts(text)


def write_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print labels and values, aligned."""
    listed = list(facts)
    width = max(len(label) for label, _ in listed)
    write("\n".join(f"{label.ljust(width)}  {value}" for label, value in listed))


def write_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int = 0,
    best: int | None = None,
    dense: bool = False,
) -> None:
    """Print a table, the first ``left`` columns aligned to the left; row ``best`` is marked.

    A ``dense`` one has less space between its columns, for many of them on 80 letters.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, show_edge=not dense, padding=(0, 1, 0, 0) if dense else (0, 1)
    )
    for i, name in enumerate(head):
        table.add_column(name, justify="left" if i < left else "right", no_wrap=True)
    for i, row in enumerate(rows):
        table.add_row(*row, style="bold green" if i == best else None)
    console = Console(file=sys.stdout, highlight=False)
    # A terminal wraps what does not fit; cutting cells off would lose numbers.
    ample = console.options.update(width=_WIDEST)
    console.width = max(console.width, console.measure(table, options=ample).maximum)
    show(table, console)


def show(drawn: ConsoleRenderable, console: Console) -> None:
    """Print what Rich draws."""
    with reader_may_leave():
        console.print(drawn)
        sys.stdout.flush()


def tell(text: str) -> None:
    """Say something on standard error."""
    with _bars_hidden():
        print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Say on standard error what must not be overlooked."""
    with _bars_hidden():
        typer.secho(f"WARNING: {text}", fg="red", bold=True, err=True)


def ask(question: str) -> bool:
    """Whether a person answers yes, on standard error and standard input."""
    with _bars_hidden():
        return typer.confirm(question, default=False, err=True)


@contextmanager
def _bars_hidden() -> Iterator[None]:
    """Take progress bars off the screen, and restore them afterwards: a bar is redrawn over whatever is
    written meanwhile, and holds back a line that has not ended, as a question has not.
    """
    for bar in _bars:
        bar.stop()
    try:
        yield
    finally:
        for bar in _bars:
            bar.start()


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """End quietly if whoever reads standard output has closed it."""
    try:
        yield
    except BrokenPipeError:
        silence_output()
        raise typer.Exit(BROKEN_PIPE) from None


@contextmanager
def results_to(output: str) -> Iterator[IO[bytes]]:
    """Standard output for ``"-"``, or a file that appears when the block has ended well."""
    if output == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    with atomic_file(Path(output)) as stream:
        yield stream


def write_answers(
    answer: Callable[..., Iterator[AnsweredPoints]],
    points: str,
    output: str = STANDARD,
    *,
    as_json: bool,
    head: Mapping[str, object] | None = None,
) -> None:
    """Answer the points of a file, and write the answers while it is read; ``head`` begins the JSON."""
    piped = interruptible_input() if points == STANDARD else nullcontext()
    with piped, progress_bar("asking") as progress:
        batches = answer(progress=progress)
        with reader_may_leave(), results_to(output) as stream:
            _stream_json(batches, stream, head or {}) if as_json else _stream_csv(batches, stream)


def _stream_csv(batches: Iterator[AnsweredPoints], stream: IO[bytes]) -> None:
    """Answers as CSV after the columns of their points, batch by batch; what is not known is an empty cell.

    Lists of the members of sets, which CSV does not have, are numbers separated by spaces.
    """
    import pyarrow as pa
    from pyarrow.csv import CSVWriter, WriteOptions

    writer: Any = None
    for batch in batches:
        table = pa.Table.from_batches([batch.points])
        for i, column in enumerate(table.columns):
            if hasattr(column.type, "value_type"):
                text = [" ".join(map(str, members)) for members in column.to_pylist()]
                table = table.set_column(i, table.column_names[i], pa.array(text))
        for name, answers in batch.answers.items():
            table = table.append_column(name, pa.array(answers, from_pandas=True))
        if writer is None:
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(table.column_names)
            stream.write(header.getvalue().encode())
            # Arrow's own writer first writes the rest of what the stream has buffered.
            stream.flush()
            plain = WriteOptions(include_header=False, quoting_style="needed")
            writer = CSVWriter(stream, table.schema, write_options=plain)
        writer.write_table(table)
        stream.flush()


def _stream_json(batches: Iterator[AnsweredPoints], stream: IO[bytes], head: Mapping[str, object]) -> None:
    """Answers as one JSON document, written as it grows."""
    start = json.dumps({**head, "answers": []}).removesuffix("]}")
    stream.write(start.encode())
    separator = "\n"
    for batch in batches:
        for answer in batch.as_json():
            stream.write((separator + json.dumps(answer, allow_nan=False)).encode())
            separator = ",\n"
    stream.write(b"\n]}\n")
    stream.flush()


def silence_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def bytes_of(files: Sequence[str]) -> int | None:
    """The size of all files; None if one of them has none, or is not there."""
    return sum(map(os.path.getsize, files)) if all(map(os.path.isfile, files)) else None


@contextmanager
def progress_bar(what: str, *, size: int | None = None) -> Iterator[Progress]:
    """A bar on standard error while the block runs, if that is a terminal, and otherwise a line now and then.

    It shows a fraction, the time that is left and, for ``size`` bytes, the rate; never a number of records.
    Telling it how far the work is also lets a signal end it.
    """
    if not sys.stderr.isatty():
        yield _lines_of(what)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
    columns += [TimeElapsedColumn(), *([] if size is None else [TransferSpeedColumn()])]
    columns += [TextColumn("left"), TimeRemainingColumn()]
    total = size or 1.0
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        _bars.append(bar)

        def at(fraction: float | None) -> None:
            exit_if_interrupted()
            if fraction is not None:
                bar.update(task, total=total, completed=fraction * total)

        try:
            yield at
        finally:
            _bars.remove(bar)


def _lines_of(what: str) -> Progress:
    """Progress for a log: a line whenever some time has passed, so that short work says nothing."""
    start = last = time.monotonic()

    def at(fraction: float | None) -> None:
        nonlocal last
        exit_if_interrupted()
        now = time.monotonic()
        if now - last >= _SECONDS_OF_A_LINE:
            last = now
            part = "" if fraction is None else f" {fraction:.0%},"
            tell(f"{what}:{part} {now - start:.0f} s so far")

    return at


def short(number: float) -> str:
    """A number with five digits, whatever its size.

    >>> short(12345.678), short(0.00012345678)
    ('12346', '0.00012346')
    """
    return f"{number:.5g}" if abs(number) < 1e5 else f"{number:.0f}"


@contextmanager
def counting(
    files: Sequence[str], *, allow_clipping: bool = False, strict: bool = False
) -> Iterator[Progress]:
    """Around the count of private records: a signal ends a read of standard input, warnings are printed, or
    stop a ``strict`` command, and a bar shows the progress.
    """
    piped = interruptible_input() if STANDARD in files else nullcontext()
    bar = progress_bar("counting", size=bytes_of(files))
    with warnings_printed(strict=strict), clipping_allowed(allow_clipping), piped, bar as progress:
        yield progress


_PRINTED = (SuspiciousParameter, PublicAssumption, RepeatedRecords, RepeatedSpending)


def refused_strictly(message: str) -> UsageError:
    """What a command with ``--strict`` exits with in place of a warning."""
    return UsageError(
        message.rstrip("."), remedy="nothing was spent; leave --strict out to continue nevertheless"
    )


@contextmanager
def warnings_printed(*, strict: bool = False) -> Iterator[None]:
    """Say each warning of the block once on standard error, where results never go, at once: before a
    question is asked or a budget is debited. ``strict`` stops there instead.

    Raises
    ------
    UsageError
        at the first warning, where it is strict.
    """
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: object, **more: object) -> None:
        if issubclass(category, _PRINTED) and strict:
            raise refused_strictly(str(message))
        if issubclass(category, _PRINTED) and str(message) not in said:
            said.add(str(message))
            warn(str(message))

    with warnings.catch_warnings():
        for kind in _PRINTED:
            warnings.simplefilter("always", kind)
        warnings.showwarning = show
        yield
