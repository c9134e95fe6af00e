"""Files of records to a released function in one job: as in Python, and nothing is spent on bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushsum as hs
from hushsum.errors import BudgetExhausted, DataRefused, UsageError
from hushsum.ledger import DatasetTerms
from hushsum.operations import (
    Destination,
    FunctionReleased,
    LedgerOptions,
    PublicFile,
    RecordFiles,
    release_records,
)
from hushsum.planning import KernelSpec, MethodSpec
from hushsum.privacy import Claim, ReleaseRequest
from hushsum.releases import PUBLIC_SAMPLE, CombinedFunction

RNG = np.random.default_rng(5)
PAY = RNG.lognormal(11.0, 0.4, 3000).round(-2)
QUERIES = np.linspace(0, 300_000, 50)[:, None]


def files(folder: Path, values: np.ndarray[Any, Any], parts: int = 2) -> tuple[str, ...]:
    names = tuple(str(folder / f"part{i}.parquet") for i in range(parts))
    for name, part in zip(names, np.array_split(values, parts), strict=True):
        columns = {"pay": part} if part.ndim == 1 else {f"x{i}": part[:, i] for i in range(part.shape[1])}
        pq.write_table(pa.table(columns), name)
    return names


def released(folder: Path, paths: tuple[str, ...], **options: Any) -> FunctionReleased:
    request = ReleaseRequest(epsilon=1.0, insecure_noise_seed=options.pop("noise", 3))
    kernel = options.pop("kernel", KernelSpec(bandwidth=5000.0))
    sources = {
        name: options.pop(name) for name in ("columns", "unit_column", "max_per_unit") if name in options
    }
    bounds = options.pop("bounds", (0.0, 300_000.0))
    made = release_records(
        RecordFiles(paths, bounds=bounds, **sources),
        Destination(str(folder / "f.hush"), options.pop("ledger", None), options.pop("approve", print)),
        request,
        kernel=kernel,
        method=options.pop("method", MethodSpec()),
        **options,
    )
    return made


@pytest.mark.parametrize("records", [None, 3000])
def test_it_is_what_python_releases(tmp_path: Path, records: int | None) -> None:
    made = released(tmp_path, files(tmp_path, PAY), method=MethodSpec(records=records))
    same = hs.release(
        pa.table({"pay": PAY}),
        bandwidth=5000.0,
        bounds=(0, 300_000),
        epsilon=1.0,
        records=records,
        insecure_noise_seed=3,
    )
    assert made.option is not None
    assert made.option.method == "grid"
    assert made.claim == same.claim
    np.testing.assert_array_equal(hs.load(made.output)(QUERIES), same(QUERIES))


def test_a_method_without_a_tally_has_the_claim_that_is_shown(tmp_path: Path) -> None:
    shown = []

    def approve(claim: Claim, _: object) -> None:
        shown.append(claim)

    made = released(
        tmp_path,
        files(tmp_path, RNG.normal(size=(400, 6))),
        kernel=KernelSpec(kernel="gaussian", bandwidth=1.0),
        bounds=(-4, 4),
        method=MethodSpec(records=2000, method="landmarks"),
        approve=approve,
    )
    assert made.table is None
    assert shown == [made.claim]
    assert hs.load(made.output)(np.zeros((2, 6))).shape == (2,)


def test_a_method_without_a_tally_takes_integers_and_real_numbers(tmp_path: Path) -> None:
    rows = RNG.normal(size=(200, 6))
    paths = files(tmp_path, rows)
    pq.write_table(pa.table({f"x{i}": rows[:, i].round().astype(int) for i in range(6)}), paths[1])
    method, kernel = MethodSpec(records=2000, method="landmarks"), KernelSpec(bandwidth=1.0)
    made = released(tmp_path, paths, kernel=kernel, bounds=(-4, 4), method=method)
    assert made.table is None


def test_persons_are_counted_in_a_tally(tmp_path: Path) -> None:
    path = str(tmp_path / "visits.parquet")
    pq.write_table(pa.table({"pay": PAY, "who": np.arange(3000) // 3}), path)
    made = released(tmp_path, (path,), columns=("pay",), unit_column="who", max_per_unit=2)
    assert made.claim.unit == "person"
    assert made.claim.records_per_unit == 2


def test_with_a_ledger_a_repeated_command_spends_once(tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    hs.Ledger.create(url).create_dataset("pay", DatasetTerms.of(epsilon=1.0))
    options = LedgerOptions(url, "pay")
    paths = files(tmp_path, PAY)
    request = ReleaseRequest(epsilon=1.0)
    records = RecordFiles(paths, bounds=(0, 300_000))
    kernel = KernelSpec(kernel="euclidean", bandwidth=5000.0)

    def release(name: str) -> FunctionReleased | None:
        return release_records(
            records, Destination(str(tmp_path / name), options), request, kernel=kernel, method=MethodSpec()
        )

    assert release("a.hush") is not None
    second = release("a.hush")
    assert second is not None
    assert second.record is not None
    assert second.record.again
    with pytest.raises(BudgetExhausted):
        release("b.hush")
    assert not (tmp_path / "b.hush").exists()


def test_bad_records_release_nothing(tmp_path: Path) -> None:
    paths = files(tmp_path, np.append(PAY, np.nan))
    with pytest.raises(DataRefused):
        released(tmp_path, paths)
    assert not (tmp_path / "f.hush").exists()


def test_bad_records_cost_nothing_without_a_tally_either(tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    ledger = hs.Ledger.create(url)
    ledger.create_dataset("sensors", DatasetTerms.of(epsilon=1.0))
    rows = RNG.normal(size=(400, 6))
    rows[300, 2] = np.nan
    with pytest.raises(DataRefused):
        release_records(
            RecordFiles(files(tmp_path, rows), bounds=(-4, 4)),
            Destination(str(tmp_path / "f.hush"), LedgerOptions(url, "sensors")),
            ReleaseRequest(epsilon=1.0),
            kernel=KernelSpec(kernel="gaussian", bandwidth=1.0),
            method=MethodSpec(records=2000, method="landmarks"),
        )
    assert ledger.account("sensors").spent.epsilon == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"columns": ("salary",)}, "salary"),
        ({"unit_column": "who"}, "max_per_unit"),
        ({"kernel": KernelSpec(kernel="jaccard")}, "set_column"),
    ],
)
def test_wrong_parameters_are_named(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        released(tmp_path, files(tmp_path, PAY), **change)


def test_standard_input_needs_a_key_in_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="idempotency_key"):
        released(tmp_path, ("-",), ledger=LedgerOptions(str(tmp_path / "ledger.db"), "pay"))


def test_a_public_file_decides_what_is_not_declared_and_is_combined(tmp_path: Path) -> None:
    public = str(tmp_path / "public.parquet")
    pq.write_table(pa.table({"pay": RNG.lognormal(11.0, 0.4, 400)}), public)
    made = released(
        tmp_path,
        files(tmp_path, PAY),
        kernel=KernelSpec(kernel="gaussian"),
        bounds=None,
        method=MethodSpec(records=3000),
        public=PublicFile(public),
    )
    f: Any = hs.load(str(tmp_path / "f.hush"))
    assert isinstance(f, CombinedFunction)
    assert f.claim.assumptions == (PUBLIC_SAMPLE,)
    assert made.claim == f.claim
    kernel: Any = f.kernel
    assert 1000.0 < kernel.bandwidth < 20_000.0
    exact = kernel.exact_sum(PAY[:, None], QUERIES) / len(PAY)
    assert np.abs(f(QUERIES) - exact).mean() < 0.02
