from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.exact_tallies import exact_state

import hushsum as hs
from hushsum.declaration import check_fields
from hushsum.errors import UsageError
from hushsum.kernels import kernel_in_words
from hushsum.operations import (
    Destination,
    RecordFiles,
    TallyDescription,
    check_output,
    merge_tallies,
    read_key,
    release_tally,
    tally_records,
)
from hushsum.planning import KernelSpec, TableSpec
from hushsum.privacy import Claim, ReleaseRequest
from hushsum.records import refuse_repeated

CHOICE = KernelSpec(kernel="euclidean", bandwidth=1.0)
SMALL = TableSpec(rows=16, width=64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(3)
    for name in ("a", "b"):
        np.savetxt(
            tmp_path / f"{name}.csv",
            random.standard_normal((40_000, 2)),
            "%.4f",
            ",",
            header="x,y",
            comments="",
        )
    return tmp_path


def count(folder: Path, *names: str, output: str = "out.tally", **more: object) -> TallyDescription:
    paths = tuple(str(folder / name) for name in names)
    return tally_records(RecordFiles(paths), str(folder / output), kernel=CHOICE, size=SMALL, **more)  # type: ignore[arg-type]


def test_progress_rises_to_one_over_all_files(folder: Path) -> None:
    reported: list[float | None] = []
    count(folder, "a.csv", "b.csv", progress=reported.append)
    fractions = [each for each in reported if each is not None]
    assert len(fractions) == len(reported)
    assert fractions == sorted(fractions)
    assert 0.0 < fractions[0] <= 0.6 < fractions[-1] == 1.0


def test_merged_files_equal_files_counted_together(folder: Path) -> None:
    count(folder, "a.csv", "b.csv", output="both.tally")
    parts = [str(folder / f"{name}.tally") for name in "ab"]
    for name in "ab":
        count(folder, f"{name}.csv", output=f"{name}.tally")
    merged = merge_tallies(parts, str(folder / "merged.tally"))
    both, whole = (exact_state(hs.load_tally(folder / name)) for name in ("both.tally", "merged.tally"))
    np.testing.assert_array_equal(both["table"], whole["table"])
    assert merged.as_json()["fingerprint"] == hs.load_tally(folder / "both.tally").fingerprint


def test_a_failing_callback_leaves_no_file(folder: Path) -> None:
    def fail(_: float | None) -> None:
        raise KeyboardInterrupt

    before = sorted(folder.iterdir())
    with pytest.raises(KeyboardInterrupt):
        count(folder, "a.csv", progress=fail)
    assert sorted(folder.iterdir()) == before


def test_a_declined_release_draws_nothing(folder: Path) -> None:
    count(folder, "a.csv")
    shown: list[Claim] = []

    def decline(claim: Claim, account: object) -> None:
        assert account is None
        shown.append(claim)
        raise InterruptedError

    terms = ReleaseRequest(epsilon=0.1, delta=1e-7, relation="replace")
    tally, output = str(folder / "out.tally"), str(folder / "f.hush")
    with pytest.raises(InterruptedError):
        release_tally(tally, Destination(output, approve=decline), terms)
    assert not (folder / "f.hush").exists()
    released = release_tally(tally, Destination(output), terms)
    assert shown == [released.claim]


def test_a_file_named_twice_is_refused(folder: Path) -> None:
    (folder / "link.csv").symlink_to(folder / "a.csv")
    with pytest.raises(UsageError, match="named twice"):
        refuse_repeated([str(folder / "a.csv"), str(folder / "link.csv")])
    with pytest.raises(UsageError, match="named twice"):
        refuse_repeated(["-", "-"])


def test_outputs_are_checked_first(folder: Path) -> None:
    with pytest.raises(UsageError, match="must exist"):
        check_output(str(folder / "no" / "x"))
    with pytest.raises(UsageError, match="is a folder"):
        check_output(str(folder))
    with pytest.raises(UsageError, match="is an input too"):
        check_output(str(folder / "." / "a.csv"), inputs=[str(folder / "a.csv")])


def test_keys(folder: Path) -> None:
    raw = bytes(range(32))
    for name, data in (("raw", raw), ("hex", raw.hex().encode() + b"\r\n")):
        (folder / name).write_bytes(data)
        assert read_key(str(folder / name)) == raw
    for data in (b"", raw[:-1], b"zz" * 32, raw.hex().encode()[:-2]):
        (folder / "bad").write_bytes(data)
        with pytest.raises(UsageError, match="32 bytes or 64 hexadecimal digits"):
            read_key(str(folder / "bad"))


def test_kernel_choices() -> None:
    assert KernelSpec(kernel="angular", bits=3).build(5) == hs.AngularKernel(dim=5, bits=3)
    assert KernelSpec(kernel="jaccard", power=2).build(None) == hs.JaccardKernel(power=2)
    assert kernel_in_words(hs.JaccardKernel(power=2)) == "jaccard (power 2)"
    with pytest.raises(UsageError, match="no bandwidth"):
        KernelSpec(kernel="hamming", bandwidth=1.0).build(2)
    with pytest.raises(UsageError, match="bandwidth must be given"):
        KernelSpec(kernel="manhattan").build(2)
    with pytest.raises(UsageError, match="number of columns"):
        CHOICE.build(None)


def test_any_number_of_columns_may_be_named() -> None:
    check_fields(RecordFiles(columns=tuple(f"x{i}" for i in range(1000))))
    with pytest.raises(UsageError, match="columns must be"):
        check_fields(RecordFiles(columns=()))
