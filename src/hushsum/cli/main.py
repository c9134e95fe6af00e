"""The entry point: commands, and what each kind of failure ends with.

Exit codes: 0 ok, 1 unexpected, 2 usage, 3 budget exhausted, 4 incompatible tallies, 5 corrupt or unsupported
file, 6 data refused; 130 interrupted, 143 terminated, 141 the reader of
standard output left.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from hushsum.cli.audit import audit
from hushsum.cli.choose import choose
from hushsum.cli.demo import demo
from hushsum.cli.interrupts import INTERRUPTED, end_on_signals
from hushsum.cli.ledger import ledger
from hushsum.cli.merge import merge
from hushsum.cli.output import BROKEN_PIPE, silence_output, tell
from hushsum.cli.plan import plan
from hushsum.cli.plot import plot
from hushsum.cli.query import query
from hushsum.cli.release import release
from hushsum.cli.show import show
from hushsum.cli.tally import tally
from hushsum.errors import HushsumError
from hushsum.version import __version__

UNEXPECTED = 1
USAGE = 2

app = typer.Typer(
    name="hushsum",
    help="Release a function of your private data once; ask it questions for ever.",
    epilog="Start with: hushsum demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, plan, choose, tally, merge, release, query, show, plot, audit):
    app.command()(command)
app.add_typer(ledger)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hushsum {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Release a function of your private data once; ask it questions for ever."""


def run() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    end_on_signals()
    code = _run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_output()
        code = code or BROKEN_PIPE
    sys.exit(code)


def _run() -> int:
    """One sentence for whatever goes wrong; engines' own messages, which may quote data, are never shown."""
    debug = os.environ.get("HUSHSUM_DEBUG", "") not in ("", "0")
    try:
        app(prog_name="hushsum")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else UNEXPECTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except HushsumError as error:
        if debug:
            raise
        tell(f"hushsum: {error}")
        return error.exit_code
    except OSError as error:
        if debug:
            raise
        where = f" {error.filename!r}" if isinstance(error.filename, str) else ""
        tell(f"hushsum: the system refused the file{where}: {(error.strerror or 'no reason given').lower()}")
        return USAGE if error.filename else UNEXPECTED
    except MemoryError:
        tell("hushsum: the memory of this machine does not suffice; use fewer rows or a smaller width")
        return UNEXPECTED
    except Exception as error:
        if debug:
            raise
        tell(
            f"hushsum: something unexpected happened ({type(error).__name__}), and nothing was written; "
            "set HUSHSUM_DEBUG=1 to see where, and report it"
        )
        return UNEXPECTED
    return 0


if __name__ == "__main__":
    run()
