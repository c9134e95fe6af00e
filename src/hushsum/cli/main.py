"""The entry point: commands, and what each kind of failure ends with.

Exit codes: 0 ok, 1 unexpected, 2 usage, 3 budget exhausted, 4 incompatible tallies, 5 corrupt or unsupported
file, 6 data refused; 130 interrupted, 143 terminated, 141 the reader of
standard output left.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn

import typer

from hushsum.errors import HushsumError
from hushsum.privacy import debit_stands, what_was_spent
from hushsum.version import __version__

from .declared_options import add_command
from .interrupts import INTERRUPTED, end_on_signals, was_interrupted
from .output import BROKEN_PIPE, silence_output, tell
from .parser import Command, Group, failed_surface, is_usage_error, may_have_spent, sentence_of, shows_help

_COMPLETION: Final = "_HUSHSUM_COMPLETE"
UNEXPECTED = 1
USAGE = 2
_REMEDIES: Final = {
    errno.ENOSPC: "free some space, or choose another folder",
    errno.EDQUOT: "free some space, or choose another folder",
    errno.EACCES: "check its permissions, or choose another folder",
    errno.EPERM: "check its permissions, or choose another folder",
    errno.EROFS: "choose another folder",
    errno.EFBIG: "choose another folder, or fewer rows",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EIO: "check the disk",
}
_NOT_A_WRONG_PATH: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# The module of each command or group of commands, in the order of help.
COMMANDS: Final = {
    command: module
    for module, commands in {
        "demo": ["demo"],
        "plan": ["plan", "benchmark"],
        "tally": ["tally", "merge"],
        "release": ["release", "heatmap", "choose"],
        "fit": ["fit", "synthesize"],
        "public_files": ["query", "predict", "sample", "show", "compare", "plot", "page", "audit"],
        "watch": ["watch"],
        "serve": ["serve"],
        "ledger": ["ledger"],
        "summarize": ["summarize"],
        "federate": ["federate"],
        "collect": ["collect", "report"],
    }.items()
    for command in commands
}


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"hushsum {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Release a function of private data once under differential privacy; query it any number of times."""


def application(*only: str) -> typer.Typer:
    """An application with all commands, or with the named commands only: importing a command and making its
    options takes longer than many commands run.
    """
    made = typer.Typer(
        name="hushsum",
        cls=Group,
        help=options.__doc__,
        epilog="Start with: hushsum demo",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in only or COMMANDS:
        module = import_module(f"hushsum.cli.{COMMANDS[name]}")
        command = getattr(module, name)
        if isinstance(command, typer.Typer):
            made.add_typer(command)
        else:
            add_command(made, command, module.FitCommand if name == "fit" else Command)
    made.callback()(options)
    return made


def _requested() -> typer.Typer:
    """The command that the first argument names; all of them for anything else, such as a completion."""
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    return application(word) if word in COMMANDS and _COMPLETION not in os.environ else application()


def run() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    end_on_signals()
    code = _run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_output()
        code = code or BROKEN_PIPE
    if code:
        # All files are closed or removed by now. After an interruption or a refusal a reading thread of Arrow
        # may still run, and would abort the process if the interpreter took its time to end.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _run() -> int:
    """One sentence for whatever goes wrong; engines' own messages, which may quote data, are never shown."""
    debug = os.environ.get("HUSHSUM_DEBUG", "") not in ("", "0")
    try:
        code = _requested()(prog_name="hushsum", standalone_mode=False)
        if code == INTERRUPTED and was_interrupted():
            tell(_interrupted())
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else UNEXPECTED
    except (KeyboardInterrupt, typer.Abort):
        tell(_interrupted())
        return INTERRUPTED
    except HushsumError as error:
        if debug:
            raise
        tell(f"hushsum: {error.words(failed_surface())}{_debited()}")
        return error.exit_code
    except OSError as error:
        if debug:
            raise
        tell(f"hushsum: {_refused_by_the_system(error)}")
        return USAGE if error.filename and error.errno not in _NOT_A_WRONG_PATH else UNEXPECTED
    except MemoryError:
        tell("hushsum: this machine has not enough memory; use fewer rows or a smaller width")
        return UNEXPECTED
    except Exception as error:
        if is_usage_error(error):
            return _misused(error)
        if debug:
            raise
        tell(
            f"hushsum: something unexpected happened ({type(error).__name__}), and nothing was written; "
            f"set HUSHSUM_DEBUG=1 to see where, and report it{_debited()}"
        )
        return UNEXPECTED
    return code if isinstance(code, int) else 0


def _refused_by_the_system(error: OSError) -> str:
    """What failed, on which file, and what helps where that is known."""
    names = [name for name in (error.filename2, error.filename) if isinstance(name, str)]
    where = f" {names[0]!r}" if names else ""
    reason = (error.strerror or "no reason given").lower()
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy and _debited():
        # In another folder it would be another release.
        remedy = remedy.split(", or ")[0]
    return f"the system refused the file{where}: {reason}" + (f"; {remedy}" if remedy else "") + _debited()


def _interrupted() -> str:
    """What an interruption leaves behind, of a command that spends."""
    return f"interrupted; {what_was_spent()}" if may_have_spent() else "interrupted"


def _debited() -> str:
    """The end of a sentence about a release that failed after its debit; mostly empty."""
    return f"; {what_was_spent()}" if may_have_spent() and debit_stands() else ""


def _misused(error: Any) -> int:
    if shows_help(error):
        error.show()
    else:
        tell(f"hushsum: {sentence_of(error)}")
    return int(error.exit_code)


if __name__ == "__main__":
    run()
