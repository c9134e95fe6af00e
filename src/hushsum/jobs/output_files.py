"""The files of a job: outputs and the keys of encrypted tallies, checked before long work starts; and
released functions from a path or from standard input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hushsum.errors import FilePath, UsageError
from hushsum.files.container import FileKind
from hushsum.files.encryption import KEY_BYTES
from hushsum.records.remote_files import is_url, shown_path
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_function

STANDARD = "-"
"""The name of standard input or output where a path is expected."""


def check_output(output: str, *, inputs: Sequence[str] = ()) -> Path:
    """The path of a file that can be written, so that no work is lost for a typing error.

    Raises
    ------
    UsageError
        if its folder does not exist or cannot be written, it is a folder itself, or it is one of the inputs.
    """
    if output == STANDARD:
        raise UsageError(
            parameter="output",
            rule="must be a file",
            got="'-'",
            remedy="give a path",
        )
    path = Path(output)
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(
            rule=(
                "the folder ",
                FilePath(folder, service="the folder", quoted=True),
                " must exist to write ",
                FilePath(path.name, quoted=True),
                " in it",
            ),
            remedy="make it first",
        )
    if path.is_dir():
        raise UsageError(
            rule=(FilePath(output, quoted=True), " is a folder"), remedy="give the path of a file"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            rule=("the folder ", FilePath(folder, service="the folder", quoted=True), " must be writable"),
            remedy="check its permissions",
        )
    for each in inputs:
        if path.exists() and each != STANDARD and Path(each).exists() and path.samefile(each):
            raise UsageError(
                rule=(FilePath(output, quoted=True), " is an input too, and would be overwritten"),
                remedy="give another output",
            )
    return path


def check_tally_output(output: str, *, inputs: Sequence[str] = ()) -> Path:
    """The path of a tally to be written; it may replace a tally, and nothing else.

    Raises
    ------
    UsageError
        as `check_output` does, for a name that belongs to public files, and for a file that is not a tally.
    """
    path = check_output(output, inputs=inputs)
    if path.suffix.lower() == ".hush":
        raise UsageError(
            rule=("a tally is secret, and .hush is for public files, got ", FilePath(output, quoted=True)),
            remedy="let its name end in .tally",
        )
    if path.exists() and kind_of(path) is not FileKind.TALLY and path.stat().st_size:
        raise UsageError(
            rule=(FilePath(output, quoted=True), " exists and is not a tally, so it is not replaced"),
            remedy="give another output",
        )
    return path


def check_function_output(output: str, *, inputs: Sequence[str] = (), interactive: bool = False) -> Path:
    """The path of a released function to be written; it never replaces a tally.

    A released function is replaced, and any other file only if a person confirms it (``interactive``).

    Raises
    ------
    UsageError
        as `check_output` does, for a name that belongs to tallies, and for a file that is not replaced.
    """
    path = check_output(output, inputs=inputs)
    if path.suffix.lower() == ".tally":
        raise UsageError(
            rule=(
                ".tally is for confidential tallies, got ",
                FilePath(output, quoted=True),
                " for a released function",
            ),
            remedy="let its name end in .hush",
        )
    if path.suffix.lower() != ".hush":
        raise UsageError(
            parameter="output", rule="must end in .hush", got=repr(path.name), remedy="rename it"
        )
    if not path.exists():
        return path
    kind = kind_of(path)
    if kind not in (None, FileKind.RELEASED):
        raise UsageError(
            rule=(FilePath(output, quoted=True), " is confidential, which a release never replaces"),
            remedy="give another output",
        )
    if kind is None and not interactive and path.stat().st_size:
        raise UsageError(
            rule=(
                FilePath(output, quoted=True),
                " exists and is not a released function, so it is not replaced",
            ),
            remedy="give another output",
        )
    return path


def check_answers_output(output: str, *, inputs: Sequence[str] = ()) -> Path:
    """The path of a file of answers to be written; it never replaces a tally or a released file.

    Raises
    ------
    UsageError
        as `check_output` does, and for a file that is not replaced.
    """
    path = check_output(output, inputs=inputs)
    if kind_of(path) is not None:
        raise UsageError(
            rule=(
                FilePath(output, quoted=True),
                " is a tally or a released file, which answers never replace",
            ),
            remedy="give another output",
        )
    return path


def kind_of(path: Path) -> FileKind | None:
    """What a file says it is in its first bytes; None if it is neither kind, or no file that can be read."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        magic = stream.read(len(FileKind.TALLY.value))
    return next((kind for kind in FileKind if kind.value == magic), None)


def is_tally(path: str) -> bool:
    """Whether a file is one of Hushsum's, or is named like a tally; files of records are neither."""
    return Path(path).suffix.lower() == ".tally" or kind_of(Path(path)) is not None


def refuse_repeated(paths: Sequence[str]) -> None:
    """Raise UsageError if a file is named twice, by whatever path: its records would be counted twice."""
    seen: set[object] = set()
    for each in paths:
        place: object = each
        if each != STANDARD and not is_url(each):
            if not Path(each).exists():
                continue
            status = os.stat(each)
            place = (status.st_dev, status.st_ino)
        if place in seen:
            raise UsageError(
                rule=(
                    FilePath(shown_path(each), quoted=True),
                    " is named twice, and its records would count twice",
                ),
                remedy="name it once",
            )
        seen.add(place)


def read_key(path: str) -> bytes:
    """The key in a file: 32 bytes as they are, or 64 hexadecimal digits.

    Raises
    ------
    UsageError
        if there is no such file, or it holds neither. The message does not show what it holds.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise UsageError(
            rule=("no key file ", FilePath(path, quoted=True)), remedy="check the path"
        ) from None
    except OSError:
        raise UsageError(
            rule=("the key file ", FilePath(path, quoted=True), " cannot be read"),
            remedy="check the path and its permissions",
        ) from None
    if len(data) == KEY_BYTES:
        return data
    try:
        key = bytes.fromhex(data.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError(
            rule=f"a key file must hold {KEY_BYTES} bytes or {2 * KEY_BYTES} hexadecimal digits",
            got="something else",
            remedy=f"make one with: openssl rand -hex {KEY_BYTES}",
        )
    return key


def open_function(source: str) -> ReleasedFunction:
    """The function in a ``.hush`` file; ``"-"`` reads it from standard input."""
    return load_function(sys.stdin.buffer if source == STANDARD else source)
