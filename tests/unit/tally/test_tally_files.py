"""``.tally`` files: marked, private to their owner, refused where a release is expected."""

from __future__ import annotations

import io
import json
import os
import stat
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import ClaimError, FileRefused, UsageError
from hushsum.files import FileKind, read_container, write_container
from hushsum.operations import EngineChoice, RecordFiles, describe_file, tally_records
from hushsum.planning import KernelSpec, TableSpec
from hushsum.privacy import Relation
from hushsum.records import CellFormat
from hushsum.tally import Tally, TallyPattern
from tests.exact_tallies import exact_count, exact_state, exact_table

KEY = bytes(range(32))


def filled(records: int = 1234) -> Tally:
    points = np.random.default_rng(5).normal(size=(records, 2))
    return hs.race(hs.EuclideanKernel(2, 1.0), rows=6, width=10, seed=1).add(points)


def header_of(path: Path) -> tuple[bytes, dict[str, Any]]:
    data = path.read_bytes()
    length = struct.unpack_from("<I", data, 12)[0]
    header: dict[str, Any] = json.loads(data[24 : 24 + length])
    return data, header


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_round_trip(tmp_path: Path, key: bytes | None) -> None:
    tally, path = filled(), tmp_path / "a.tally"
    tally.save(path, encryption_key=key)
    back = hs.load_tally(path, encryption_key=key)
    for name, value in exact_state(tally).items():
        np.testing.assert_array_equal(exact_state(back)[name], value)
    assert back.fingerprint == tally.fingerprint
    back.add([[0.0, 0.0]]).merge(filled())
    assert exact_count(back) == 2 * 1234 + 1


def test_an_empty_tally_survives(tmp_path: Path) -> None:
    hs.race(hs.JaccardKernel(), rows=2, width=4).save(tmp_path / "none.tally")
    back = hs.load_tally(tmp_path / "none.tally")
    assert not exact_table(back).any()
    assert exact_count(back.add([[1, 2], []])) == 2


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_the_first_bytes_say_confidential(tmp_path: Path, key: bytes | None) -> None:
    filled().save(tmp_path / "a.tally", encryption_key=key)
    assert b"CONFIDENTIAL" in (tmp_path / "a.tally").read_bytes()[:4096]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        filled().save(tmp_path / "a.tally")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "a.tally").st_mode) == 0o600


def test_saving_over_a_readable_file_makes_it_private(tmp_path: Path) -> None:
    path = tmp_path / "a.tally"
    path.write_bytes(b"old")
    path.chmod(0o666)
    filled().save(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_header_holds_no_count(tmp_path: Path) -> None:
    small, large = tmp_path / "s.tally", tmp_path / "l.tally"
    filled(1234).save(small, encryption_key=KEY)
    filled(4321).save(large, encryption_key=KEY)
    (small_data, small_header), (large_data, large_header) = header_of(small), header_of(large)
    assert len(small_data) == len(large_data), "an encrypted file's size tells how many records it holds"
    assert small_header["encryption"].pop("salt") != large_header["encryption"].pop("salt")
    assert small_header == large_header
    assert b"1234" not in small_data[: small_data.index(b"}}") + 200].split(b'"salt"')[0]


def test_encryption_hides_the_counts(tmp_path: Path) -> None:
    tally = filled()
    tally.save(tmp_path / "plain.tally")
    tally.save(tmp_path / "sealed.tally", encryption_key=KEY)
    counts = np.array([1234, 1234], "<i8").tobytes()
    assert counts in (tmp_path / "plain.tally").read_bytes()
    assert counts not in (tmp_path / "sealed.tally").read_bytes()


def test_two_encryptions_of_one_tally_differ(tmp_path: Path) -> None:
    tally = filled()
    for name in ("a", "b"):
        tally.save(tmp_path / name, encryption_key=KEY)
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()


def test_keys_are_requested_for_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.tally"
    filled().save(path, encryption_key=KEY)
    with pytest.raises(UsageError, match="encryption_key must be given: this tally is encrypted"):
        hs.load_tally(path)
    with pytest.raises(FileRefused, match="key does not open"):
        hs.load_tally(path, encryption_key=bytes(32))
    with pytest.raises(UsageError, match="32 bytes"):
        hs.load_tally(path, encryption_key=b"short")
    with pytest.raises(UsageError, match="32 bytes"):
        filled().save(tmp_path / "b.tally", encryption_key=b"short")
    assert not (tmp_path / "b.tally").exists()


def test_a_rewritten_header_of_an_encrypted_tally_is_refused(tmp_path: Path) -> None:
    """The checksum alone would accept it: anyone can compute that. The cipher does not."""
    path = tmp_path / "a.tally"
    filled().save(path, encryption_key=KEY)
    header, payload = read_container(path, FileKind.TALLY, lambda h: 6 * 10 * 8 + 16 + 16 + 16)
    header["basis"]["parameters"]["seed"] = 2
    write_container(path, FileKind.TALLY, header, [payload])
    with pytest.raises(FileRefused, match="key does not open"):
        hs.load_tally(path, encryption_key=KEY)


@pytest.mark.parametrize("salt", ["zz" * 16, "00", "", "00" * 17, 5, None])
def test_a_senseless_salt_is_refused(tmp_path: Path, salt: object) -> None:
    path = tmp_path / "a.tally"
    filled().save(path, encryption_key=KEY)
    header, payload = read_container(path, FileKind.TALLY, lambda h: 6 * 10 * 8 + 16 + 16 + 16)
    header["encryption"]["salt"] = salt
    write_container(path, FileKind.TALLY, header, [payload])
    with pytest.raises(FileRefused):
        hs.load_tally(path, encryption_key=KEY)


def test_a_tally_is_no_release_and_a_release_no_tally(tmp_path: Path) -> None:
    filled().save(tmp_path / "a.tally")
    filled().release(epsilon=1.0).save(tmp_path / "a.hush")
    with pytest.raises(FileRefused, match=r"confidential tally .* not a released function"):
        hs.load(tmp_path / "a.tally")
    with pytest.raises(FileRefused, match=r"confidential tally .* not a released function"):
        hs.load(io.BytesIO((tmp_path / "a.tally").read_bytes()))
    with pytest.raises(FileRefused, match=r"released function .* not a confidential tally"):
        hs.load_tally(tmp_path / "a.hush")


def test_every_flipped_byte_of_a_tally_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tally"
    hs.race(hs.JaccardKernel(), rows=2, width=3).add([[1]]).save(path)
    data = path.read_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << (position % 8)
        path.write_bytes(changed)
        with pytest.raises(FileRefused):
            hs.load_tally(path)


def gapped(tmp_path: Path, records: bytes, **chosen: Any) -> Path:
    """A tally of a file of which records with missing values are left out."""
    source, output = tmp_path / "gaps.csv", tmp_path / "gaps.tally"
    source.write_bytes(records)
    tally_records(
        RecordFiles((str(source),), ("a",), bounds=(0.0, 9.0), cells=CellFormat(drop_missing=True)),
        str(output),
        kernel=KernelSpec(kernel="gaussian", bandwidth=1.0),
        size=TableSpec(method="grid"),
        **chosen,
    )
    return output


def test_a_tally_remembers_that_records_were_left_out(tmp_path: Path) -> None:
    """Their number is not public: it changes when a whole record is replaced by one with a gap."""
    saved = gapped(tmp_path, b"a,b\n1,x\n,y\n3,z\nNA,w\n")
    tally = hs.load_tally(saved)
    assert exact_count(tally) == 2
    assert describe_file(str(saved)).as_json()["add_remove_only"]
    assert tally.release(epsilon=1.0, insecure_noise_seed=1).claim.relation is Relation.ADD_REMOVE
    with pytest.raises(ClaimError, match="relation must be 'add/remove' for a tally from which"):
        tally.release(epsilon=1.0, relation="replace")
    whole = TallyPattern.of(hs.grid(tally.reading.kernel, bounds=[(0, 9)], columns=["a"])).empty()
    whole.add([[1.0]])
    whole.release(epsilon=1.0, relation="replace", insecure_noise_seed=1)
    with pytest.raises(ClaimError, match="relation must be 'add/remove'"):
        whole.merge(tally).release(epsilon=1.0, relation="replace")
    stream = hs.stream(
        hs.grid(tally.reading.kernel, bounds=[(0, 9)], columns=["a"]),
        horizon=2,
        epsilon=1.0,
        delta=1e-9,
        relation="replace",
        path=tmp_path / "a.stream",
    )
    with pytest.raises(ClaimError, match="relation must be 'add/remove'"):
        stream.merge(tally)


def test_engines_count_files_with_gaps_alike(tmp_path: Path) -> None:
    data = b"a\n" + b"1\n\n2\n-\n" * 50
    here = hs.load_tally(gapped(tmp_path, data))
    (tmp_path / "there").mkdir()
    there = hs.load_tally(gapped(tmp_path / "there", data, engine=EngineChoice("processes", workers=2)))
    np.testing.assert_array_equal(exact_table(here), exact_table(there))
    assert exact_count(here) == exact_count(there) == 100
    assert there.add_remove_only
