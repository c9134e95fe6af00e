"""What every engine must do: count as one process does, bit for bit, or refuse with the file's name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from hushsum.errors import DataRefused, HushsumError, UsageError
from tests.engine_cases import ENGINES, Engine
from tests.engine_files import counts, empty, one_process, write_files

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(params=[pytest.param(each, marks=each.marks, id=each.name) for each in ENGINES])
def engine(request: pytest.FixtureRequest) -> Engine:
    chosen: Engine = request.param
    chosen.skip_if_missing()
    return chosen


def test_the_counts_are_those_of_one_process(engine: Engine, files: list[str]) -> None:
    pattern = empty()
    filled = engine.tally(files, pattern)
    assert counts(filled) == counts(one_process(files, empty()))
    assert counts(pattern) == counts(empty())
    assert filled.fingerprint == pattern.fingerprint


def test_a_cap_keeps_the_same_records_of_each_person(engine: Engine, files: list[str]) -> None:
    if not engine.takes_caps:
        with pytest.raises(UsageError, match="max_per_unit"):
            engine.tally(files, empty(max_per_unit=2), unit_column="who")
        return
    filled = engine.tally(files, empty(max_per_unit=2), unit_column="who")
    assert counts(filled) == counts(one_process(files, empty(max_per_unit=2)))


def test_the_result_is_released_like_any_tally(engine: Engine, files: list[str]) -> None:
    filled = engine.tally(files, empty())
    released = filled.release(epsilon=1.0, insecure_noise_seed=1)
    expected = one_process(files, empty()).release(epsilon=1.0, insecure_noise_seed=1)
    np.testing.assert_array_equal(released([[0.0, 0.0]]), expected([[0.0, 0.0]]))


def table(**more: object) -> pa.Table:
    columns = {"a": [0.5, 1.5], "b": [1.0, 2.0]} | more
    return pa.table({name: value for name, value in columns.items() if value is not None})


def bad_file(folder: Path, fault: str) -> str:
    path = str(folder / "faulty.parquet")
    match fault:
        case "NaN":
            pa.parquet.write_table(table(a=[0.5, float("nan")]), path)
        case "column":
            pa.parquet.write_table(table(b=None, c=[1.0, 2.0]), path)
        case "text":
            pa.parquet.write_table(table(a=["secret-value", "x"]), path)
        case "corrupt":
            pa.parquet.write_table(table(a=np.arange(2000.0), b=np.arange(2000.0)), path)
            data = bytearray(Path(path).read_bytes())
            data[200:900] = bytes(700)
            Path(path).write_bytes(data)
    return path


@pytest.mark.parametrize("fault", ["NaN", "column", "text", "corrupt"])
def test_one_bad_file_refuses_the_job_by_name(
    engine: Engine, files: list[str], tmp_path: Path, fault: str
) -> None:
    if fault == "corrupt" and not engine.reads_files:
        pytest.skip("this engine is given records that another library has read")
    pattern = empty()
    with pytest.raises(HushsumError) as caught:
        engine.tally([*files, bad_file(tmp_path, fault)], pattern)
    sentence = str(caught.value)
    assert (not engine.reads_files) or "faulty.parquet" in sentence
    assert "secret-value" not in sentence
    assert "\n" not in sentence
    assert counts(pattern) == counts(empty())


def test_only_an_empty_tally_is_taken(engine: Engine, files: list[str]) -> None:
    with pytest.raises(UsageError, match="tally must be empty"):
        engine.tally(files, empty().add([[0.0, 0.0]]))


def test_no_records_are_refused(engine: Engine, tmp_path: Path) -> None:
    path = str(tmp_path / "none.parquet")
    pa.parquet.write_table(table().slice(0, 0), path)
    with pytest.raises(DataRefused, match="at least one record"):
        engine.tally([path], empty())
