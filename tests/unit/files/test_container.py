"""The container: every field is checked, in an order that allocates nothing on a false promise."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushsum.errors import FileRefused, UsageError
from hushsum.files import (
    FileKind,
    Section,
    canonical_json,
    container,
    pack,
    read_container,
    unpack,
    write_container,
)

HEADER = {"size": 5, "what": "é"}
PAYLOAD = b"01234"


def size_of(header: dict[str, Any]) -> int:
    return int(header["size"])


def assemble(
    *,
    magic: bytes = FileKind.RELEASED.value,
    version: int = 1,
    header: bytes = canonical_json(HEADER),
    header_length: int | None = None,
    payload: bytes = PAYLOAD,
    payload_length: int | None = None,
) -> bytes:
    """A file with a right checksum, whatever else is wrong with it; written by hand from the layout."""
    length = len(header) if header_length is None else header_length
    promised = len(payload) if payload_length is None else payload_length
    body = magic + struct.pack("<IIQ", version, length, promised) + header + payload
    return body + hashlib.sha256(body).digest()


def read(data: bytes, kind: FileKind = FileKind.RELEASED) -> tuple[dict[str, Any], bytes]:
    header, payload = read_container(io.BytesIO(data), kind, size_of)
    return header, bytes(payload)


class Counting(io.BytesIO):
    """A stream that remembers the most it was ever requested."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.most = max(self.most, -1 if size is None else size)
        return super().read(size)


def test_layout_is_the_documented_one() -> None:
    stream = io.BytesIO()
    write_container(stream, FileKind.RELEASED, HEADER, [b"01", memoryview(b"234")])
    assert stream.getvalue() == assemble()
    assert read(stream.getvalue()) == (HEADER, PAYLOAD)


def test_equal_contents_have_equal_bytes() -> None:
    first, second = io.BytesIO(), io.BytesIO()
    write_container(first, FileKind.TALLY, {"a": 1, "size": 0}, [])
    write_container(second, FileKind.TALLY, {"size": 0, "a": 1}, [b"", b""])
    assert first.getvalue() == second.getvalue()


@pytest.mark.parametrize("kind", list(FileKind))
def test_other_kind_is_named(kind: FileKind) -> None:
    other = next(each for each in FileKind if each is not kind)
    with pytest.raises(FileRefused, match=r"is a .* not a ") as refusal:
        read(assemble(magic=other.value), kind)
    assert other.noun in str(refusal.value)


@pytest.mark.parametrize("magic", [b"PK\x03\x04\0\0\0\0", b"\x89HUSH\n\n\n", b"\0" * 8])
def test_other_formats_are_refused(magic: bytes) -> None:
    with pytest.raises(FileRefused, match="is not a released function"):
        read(assemble(magic=magic))


def test_an_open_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n" * 100)
    with (
        open(tmp_path / "wrong.csv", "rb") as stream,
        pytest.raises(FileRefused, match=r"^wrong\.csv is not"),
    ):
        read_container(stream, FileKind.RELEASED, lambda _: 0)


@pytest.mark.parametrize("version", [0, 3, 2**32 - 1])
def test_other_versions_are_refused(version: int) -> None:
    with pytest.raises(FileRefused, match=f"format version {version}, this Hushsum reads version 1"):
        read(assemble(version=version))


@pytest.mark.parametrize("step", [-1, 1])
def test_wrong_header_length_is_refused(step: int) -> None:
    with pytest.raises(FileRefused, match="damaged"):
        read(assemble(header_length=len(canonical_json(HEADER)) + step))


@pytest.mark.parametrize("step", [-1, 1])
def test_wrong_payload_length_is_refused(step: int) -> None:
    with pytest.raises(FileRefused, match="damaged"):
        read(assemble(payload_length=len(PAYLOAD) + step))


def test_a_promise_of_2_to_the_60_bytes_is_refused_before_reading_them() -> None:
    stream = Counting(assemble(payload_length=1 << 60))
    with pytest.raises(FileRefused, match="damaged"):
        read_container(stream, FileKind.RELEASED, size_of)
    assert stream.most <= 64, "the payload was requested though the header promises another size"


def test_a_consistent_promise_of_2_to_the_60_bytes_reads_no_more_than_a_step_ahead() -> None:
    header = canonical_json({"size": 1 << 60})
    stream = Counting(assemble(header=header, payload_length=1 << 60))
    with pytest.raises(FileRefused, match="damaged"):
        read_container(stream, FileKind.RELEASED, size_of)
    assert stream.most <= 1 << 24


def test_a_path_that_promises_2_to_the_60_bytes_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "big.hush"
    path.write_bytes(assemble(header=canonical_json({"size": 1 << 60}), payload_length=1 << 60))

    def never(header: dict[str, Any]) -> int:
        raise AssertionError("the header was parsed though the file's size is wrong")

    with pytest.raises(FileRefused, match="damaged"):
        read_container(path, FileKind.RELEASED, never)


def test_a_huge_header_length_is_refused_unread() -> None:
    stream = Counting(assemble(header_length=(1 << 20) + 1))
    with pytest.raises(FileRefused, match="damaged"):
        read_container(stream, FileKind.RELEASED, size_of)
    assert stream.most == 24


def test_bytes_after_the_end_of_a_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.hush"
    path.write_bytes(assemble() + b"\0")
    with pytest.raises(FileRefused, match="damaged"):
        read_container(path, FileKind.RELEASED, size_of)


@pytest.mark.parametrize(
    "header",
    [
        b'{"what":"e","size":5}',
        b'{"size": 5}',
        b'{"size":5}\n',
        b'{"size":5,"size":5}',
        b'{"size":5,"what":"\\u0065"}',
        b'{"a":1E2,"size":5}',
    ],
    ids=["order", "space", "newline", "twice", "escape", "exponent"],
)
def test_another_spelling_of_the_header_is_refused(header: bytes) -> None:
    with pytest.raises(FileRefused, match="damaged"):
        read(assemble(header=header))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[5]",
        b"5",
        b"null",
        b"{",
        b"\xff\xfe{}",
        b'{"size":NaN}',
        b'{"size":Infinity}',
        b'{"size":5,"what":"\\ud800"}',
        b'{"size":' + b"9" * 5000 + b"}",
        b'{"size":5,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        '{"size":5}'.encode("utf-16"),
        b"{}",
        b'{"size":null}',
        b'{"size":"five"}',
    ],
    ids=lambda value: repr(value[:16]),
)
def test_a_header_that_makes_no_sense_is_refused(header: bytes) -> None:
    with pytest.raises(FileRefused, match="damaged"):
        read(assemble(header=header))


def test_a_size_the_header_promises_too_large_is_refused() -> None:
    with pytest.raises(FileRefused, match="damaged"):
        read(assemble(header=canonical_json({"size": 6})))


def test_refusals_of_the_size_function_keep_their_words() -> None:
    def refuse(header: dict[str, Any]) -> int:
        raise FileRefused("a kernel from the future")

    with pytest.raises(FileRefused, match="a kernel from the future"):
        read_container(io.BytesIO(assemble()), FileKind.RELEASED, refuse)


def test_headers_beyond_a_megabyte_are_not_written() -> None:
    with pytest.raises(UsageError, match="header must be at most 1048576 bytes"):
        write_container(io.BytesIO(), FileKind.RELEASED, {"a": "x" * (1 << 20)}, [])


def test_missing_files_and_folders_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        read_container(tmp_path / "none.hush", FileKind.RELEASED, size_of)
    with pytest.raises(UsageError, match="is a folder"):
        read_container(tmp_path, FileKind.RELEASED, size_of)


def test_a_failure_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "old.hush"
    write_container(path, FileKind.RELEASED, HEADER, [PAYLOAD])
    before = path.read_bytes()

    def full_disk() -> Iterator[bytes]:
        yield b"half of"
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        write_container(path, FileKind.RELEASED, {"size": 14}, [Section(14, full_disk)])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["old.hush"], "a temporary file was left behind"


def test_a_failure_before_renaming_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.hush"
    write_container(path, FileKind.RELEASED, HEADER, [PAYLOAD])
    before = path.read_bytes()

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_container(path, FileKind.RELEASED, {"size": 3}, [b"new"])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["old.hush"]


def test_the_bytes_are_on_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_sync(descriptor)

    def replace(old: str, new: Path) -> None:
        steps.append("rename")
        real_replace(old, new)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    write_container(tmp_path / "new.hush", FileKind.RELEASED, HEADER, [PAYLOAD])
    assert steps == ["file", "rename", "folder"]


@pytest.mark.parametrize(("mask", "mode", "expected"), [(0o022, 0o644, 0o644), (0o077, 0o644, 0o600)])
def test_a_new_file_obeys_mode_and_umask(tmp_path: Path, mask: int, mode: int, expected: int) -> None:
    before = os.umask(mask)
    try:
        write_container(tmp_path / "new.hush", FileKind.RELEASED, HEADER, [PAYLOAD], mode=mode)
    finally:
        assert os.umask(before) == mask, "writing changed the umask"
    assert stat.S_IMODE(os.stat(tmp_path / "new.hush").st_mode) == expected


MESSAGE = pack("greeting", {"a": 1}, {"v": np.arange(3), "w": np.zeros((2, 0))})


def test_a_message_is_read_as_it_was_packed() -> None:
    kind, values, arrays = unpack(MESSAGE, "other", "greeting", most=len(MESSAGE))
    assert (kind, values) == ("greeting", {"a": 1})
    assert arrays["v"].tolist() == [0, 1, 2]
    assert arrays["w"].shape == (2, 0)
    assert pack(kind, values, arrays) == MESSAGE


def test_every_changed_or_missing_byte_of_a_message_is_refused() -> None:
    for place in range(len(MESSAGE)):
        changed = bytearray(MESSAGE)
        changed[place] ^= 1
        for data in (bytes(changed), MESSAGE[:place]):
            with pytest.raises(FileRefused, match="hold no greeting"):
                unpack(data, "greeting")
    with pytest.raises(FileRefused, match="hold no greeting"):
        unpack(MESSAGE + b"x", "greeting")


def test_a_message_of_another_kind_or_beyond_its_limit_is_refused() -> None:
    with pytest.raises(FileRefused, match="hold no farewell"):
        unpack(MESSAGE, "farewell")
    with pytest.raises(FileRefused, match="at most 10 bytes"):
        unpack(MESSAGE, "greeting", most=10)


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"arrays": [["v", "int64", [4]], ["w", "float64", [2, 0]]]},
        {"arrays": [["v", "int64", [3]], ["v", "float64", [2, 0]]]},
        {"arrays": [["v", "uint8", [24]]]},
        {"arrays": [["v", "int64", [-3]]]},
        {"arrays": [[1, "int64", [3]]]},
        {"arrays": [["v", "int64"]]},
        {"arrays": {}},
        {"kind": ["greeting"]},
    ],
)
def test_senseless_headers_of_messages_are_refused(change: dict[str, Any]) -> None:
    header, payload = read_container(memoryview(MESSAGE), FileKind.MESSAGE, lambda _: 24)
    made = container(FileKind.MESSAGE, {**header, **change}, [payload])
    with pytest.raises(FileRefused, match="hold no greeting"):
        unpack(b"".join(made.pieces()), "greeting")
