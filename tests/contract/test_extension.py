"""A kernel, a basis and a method of one's own, in one file: they work in Python, on the command line and
in the service.

The registries are put back afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import hushsum as hs
from hushsum import methods
from hushsum._types import Floats
from hushsum.kernels import COLUMNS, Batch, ColumnKernel, ColumnProfile, Kernel, Profile, ProfileKernel
from hushsum.kernels import _kernels as kernels
from hushsum.methods import Method, Option, PredictionRequest
from hushsum.methods import _method as registry
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds, DeclaredBounds, declared_bounds
from hushsum.tables import Basis, LinearReading, Reading, Table, cell_errors
from hushsum.tables import _base as bases
from tests.in_process_service import Town, listening


@dataclass(frozen=True, slots=True)
class TriangleKernel(ProfileKernel):
    """max(0, 1 − |x − q|/bandwidth), in one column; read from a grid as exponentials."""

    name: ClassVar[str] = "triangle"

    dim: int
    bandwidth: float

    @property
    def width(self) -> float:
        return self.bandwidth

    @property
    def smooth(self) -> bool:
        return False

    def integral(self) -> float:
        return self.bandwidth

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        return (Profile.of_columns(self.dim, scale=0.45 * self.bandwidth, gaussian=True),)

    def column_profile(self) -> ColumnProfile:
        return lambda difference: np.maximum(0.0, 1.0 - np.abs(difference) / self.bandwidth)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        away = np.abs(records.arrays[0][:, None, 0].astype(float) - queries.arrays[0][None, :, 0])
        return np.asarray(np.maximum(0.0, 1.0 - away / self.bandwidth))


@dataclass(frozen=True)
class Halves(Basis):
    """A record adds 1 to the half of the box in which it lies: Δ1 = Δ2 = 1, replaced 2 and √2."""

    name: ClassVar[str] = "halves"

    bounds: Bounds
    columns: tuple[str, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 2

    def sensitivity(self, relation: Relation) -> Sensitivity:
        moved = 1 if relation is Relation.ADD_REMOVE else 2
        return Sensitivity(moved, moved, 1)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        upper = int((batch.arrays[0][:, 0] >= 0.0).sum())
        table[0] += step * np.array([len(batch) - upper, upper])

    def _reading(self, kernel: Kernel) -> HalvesReading:
        COLUMNS.check(kernel, "halves")
        return HalvesReading(self, kernel)


@dataclass(frozen=True)
class HalvesReading(LinearReading):
    """Every record at the middle of its half."""

    basis: Halves
    kernel: Kernel

    @property
    def _middles(self) -> Floats:
        half = float(self.basis.bounds.half_width[0])
        return np.array([[-half / 2], [half / 2]])

    def _values(self, batch: Batch) -> Floats:
        return self.kernel.prepared_similarity(Batch((self._middles,), 2), batch)

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        return np.asarray(table[0] @ self._values(batch), np.float64)

    def noise_gain(self, batch: Batch) -> Floats:
        return np.asarray((self._values(batch) ** 2).sum(axis=0))

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """A record is anywhere in its half, not at its middle."""
        width = self.basis.bounds.half_width.astype(np.float64)
        return cell_errors(self.kernel, self._middles, width, table[0].astype(np.float64), batch)

    def total(self, table: Table) -> tuple[float, float]:
        return float(table.sum()), 2.0


def halves(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> hs.Tally:
    box, names = declared_bounds(bounds, dim=kernel.dim or 1, columns=columns)
    return hs.Tally(
        Halves(Bounds.declared(box, kernel.dim or 1, "halves"), names), kernel, max_per_unit=max_per_unit
    )


def predict(request: PredictionRequest) -> list[Option]:
    if request.bounds is None:
        return []
    basis = Halves(request.bounds)
    noise = request.calibration(basis).table
    return [
        Option(
            "halves", request, settings={}, mechanism=noise.mechanism, shape=(1, 2), size=1000,
            noise=noise.variance**0.5 / request.records, approximation=0.2, error=0.2, seconds=0.001,
        )
    ]  # fmt: skip


def predict_reading(request: PredictionRequest, reading: Reading) -> list[Option]:
    return predict(request) if isinstance(reading.basis, Halves) else []


def register_all() -> None:
    kernels.register(TriangleKernel)
    bases.register(Halves)
    methods.register(
        Method(
            "halves", COLUMNS, "none", tally=halves, most_columns=1, predict=predict,
            predict_reading=predict_reading,
        )
    )  # fmt: skip


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    known = dict(kernels._KERNELS), dict(bases._BASES), dict(registry._METHODS)
    register_all()
    yield
    for registry_now, before in zip((kernels._KERNELS, bases._BASES, registry._METHODS), known, strict=True):
        registry_now.clear()  # type: ignore[attr-defined]
        registry_now.update(before)  # type: ignore[attr-defined]


X = np.concatenate([np.full((600, 1), 0.2), np.full((400, 1), 0.8)])


def test_the_kernel_is_released_by_every_method_whose_role_it_has(tmp_path: Path) -> None:
    kernel = hs.kernels.named("triangle", dim=1, bandwidth=0.6)
    assert isinstance(kernel, ColumnKernel)
    for method in ("auto", "grid", "histogram", "halves", "trigonometric", "mwem"):
        f: Any = hs.release(X, kernel=kernel, bounds=(0, 1), epsilon=2.0, method=method)
        assert f.kernel == kernel
        f.save(tmp_path / "f.hush")
        again = hs.load(tmp_path / "f.hush")
        np.testing.assert_array_equal(again([[0.2]]), f([[0.2]]))
        assert f([[0.2]])[0] == pytest.approx(0.6, abs=0.2)
    with pytest.raises(hs.errors.UsageError, match="collision probability"):
        hs.release(X, kernel=kernel, epsilon=1.0, method="race")


def test_the_method_is_planned_counted_and_merged() -> None:
    kernel = hs.GaussianKernel(dim=1, bandwidth=0.3)
    plan = hs.plan(records=1000, kernel=kernel, bounds=(0, 1), epsilon=1.0)
    assert "halves" in {option.method for option in plan}
    f: Any = hs.release(X, kernel=kernel, bounds=(0, 1), epsilon=5.0, method="halves", records=1000)
    assert f.basis.name == "halves"
    assert f.count == pytest.approx(1000, abs=30)
    one, other = halves(kernel, bounds=(0, 1)).add(X[:300]), halves(kernel, bounds=(0, 1)).add(X[300:])
    assert one.merge(other).release(epsilon=9.0, insecure_noise_seed=1).sum([[0.25]])[0] > 500


def test_standard_errors_contain_the_approximation() -> None:
    """With hardly any noise they are about as large as what answers are off by."""
    kernel = hs.GaussianKernel(dim=1, bandwidth=0.4)
    uniform = np.linspace(0.0, 1.0, 4001)[:, None]
    queries = np.linspace(0.05, 0.95, 19)[:, None]
    f = halves(kernel, bounds=(0, 1)).add(uniform).release(epsilon=1000.0, insecure_noise_seed=1)
    answers = f.query(queries)
    off = np.abs(answers.value - kernel.exact_sum(uniform, queries) / len(uniform))
    assert off.max() > 0.005
    assert (off < 3.0 * answers.stderr).all()


def test_a_reading_that_does_not_state_its_approximation_error_cannot_be_made() -> None:
    members: dict[str, Any] = {
        name: value for name, value in vars(HalvesReading).items() if name != "method_variance"
    }
    silent: Any = type("Silent", (LinearReading,), members)

    class SilentHalves(Halves):
        name: ClassVar[str] = "silent halves"

        def _reading(self, kernel: Kernel) -> Any:
            return silent(self, kernel)

    basis = SilentHalves(Bounds.declared((0, 1), 1, "halves"))
    with pytest.raises(TypeError, match="method_variance"):
        hs.Tally(basis, hs.GaussianKernel(dim=1, bandwidth=0.3)).add(X).release(epsilon=1.0).query([[0.5]])


def test_the_command_line_knows_them(tmp_path: Path) -> None:
    from hushsum.cli.main import application

    run = CliRunner()
    source = tmp_path / "x.csv"
    source.write_text("x\n" + "\n".join(f"{value[0]}" for value in X))
    tally, other, both, function = (
        str(tmp_path / name) for name in ("x.tally", "y.tally", "both.tally", "x.hush")
    )
    commands = [
        ["plan", "--records", "1000", "--dim", "1", "--kernel", "triangle", "--bandwidth", "0.5",
         "--bounds", "0:1", "--epsilon", "1", "--json"],
        ["tally", str(source), "--kernel", "triangle", "--bandwidth", "0.5", "--method", "halves",
         "--bounds", "0:1", "-o", tally],
        ["tally", str(source), "--kernel", "triangle", "--bandwidth", "0.5", "--method", "halves",
         "--bounds", "0:1", "-o", other],
        ["merge", tally, other, "-o", both],
        ["release", both, "--epsilon", "2", "--yes", "-o", function],
        ["query", function, "--at", "0.2"],
        ["show", function],
        ["plot", function, "-o", str(tmp_path / "x.png")],
    ]  # fmt: skip
    shown = {}
    for command in commands:
        result = run.invoke(application(), command)
        assert result.exit_code == 0, (command, result.output)
        shown[command[0]] = result.stdout
    assert "halves" in shown["plan"]
    assert "triangle" in shown["show"]
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_service_knows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    town = Town(tmp_path, extensions="tests.contract.own_method")
    kernel = {"kernel": "triangle", "bandwidth": 0.6, "bounds": [[0, 1]]}
    dataset = town.dataset(epsilon=9.0)
    path = f"/datasets/{dataset}"
    for method in ("auto", "halves"):
        request = {"records": 1000, "dim": 1, "epsilon": [1.0], "method": method, **kernel}
        plan = town.ok("olga", "POST", f"{path}/plans", json=request)
        assert "halves" in {option["method"] for option in plan["options"]}
    upload = town.upload(dataset, ("x\n" + "\n".join(str(value) for value in X[:, 0])).encode())
    counted = town.job(f"{path}/tallies", {"upload": upload, "columns": ["x"], "method": "halves", **kernel})
    assert counted["state"] == "done", counted
    tally = counted["result"]["tally"]
    listed = town.ok("olga", "GET", f"{path}/tallies")
    assert [each["facts"]["basis"] for each in listed if each["id"] == tally] == ["halves"]
    plan = town.ok("olga", "POST", f"{path}/plans", json={"tally": tally, "records": 1000, "epsilon": [8.0]})
    assert {option["method"] for option in plan["options"]} == {"halves"}
    terms = town.confirmed(dataset, tally, epsilon=8.0)
    released = town.job(f"{path}/releases", terms)
    assert released["state"] == "done", released
    id = released["result"]["function"]
    function = f"/functions/{id}"
    facts = town.ok("olga", "GET", function)["facts"]
    assert (facts["kernel"]["name"], facts["basis"]) == ("triangle", "halves")
    answer = town.ok("olga", "POST", f"{function}/query", json={"points": [[0.25]]})
    assert answer["value"][0] == pytest.approx(0.6, abs=0.1)
    (tmp_path / "x.hush").write_bytes(town.ask("olga", "GET", f"{function}/file").content)
    local: Any = hs.load(tmp_path / "x.hush")
    assert local([[0.25]])[0] == pytest.approx(answer["value"][0], rel=1e-12)
    with listening(town.app) as address, hs.connect(address, token=town.tokens["olga"]) as service:
        remote = service.function(id)
        np.testing.assert_allclose(remote([[0.25]]), local([[0.25]]), rtol=1e-12)
        assert remote.kernel == local.kernel
    method = town.app.openapi()["components"]["schemas"]["TallyRequest"]["properties"]["method"]
    assert any("halves" in each.get("enum", ()) for each in method["anyOf"])
    refused = town.refused(
        "olga", "POST", f"{path}/tallies", 422,
        json={"upload": upload, "columns": ["x"], "method": "thirds", **kernel},
        headers={"idempotency-key": "0123456789"},
    )  # fmt: skip
    assert "halves" in str(refused)


def test_worker_processes_know_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    # They are started with this path, as this process was.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    town = Town(tmp_path, extensions="tests.contract.own_method", workers=1)
    dataset = town.dataset(epsilon=9.0)
    upload = town.upload(dataset, ("x\n" + "\n".join(str(value) for value in X[:, 0])).encode())
    requested = {
        "upload": upload, "columns": ["x"], "method": "halves", "kernel": "triangle", "bandwidth": 0.6,
        "bounds": [[0, 1]],
    }  # fmt: skip
    headers = {"idempotency-key": "0123456789"}
    with listening(town.app) as address, hs.connect(address, token=town.tokens["olga"]) as service:
        job = town.ok("olga", "POST", f"/datasets/{dataset}/tallies", 202, json=requested, headers=headers)
        done = service.dataset("payroll").wait(job["id"])
    assert done["tally"]


def test_a_module_that_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hs.errors.UsageError, match=r"HUSHSUM_EXTENSIONS .* got 'tests.no_such_module'"):
        Town(tmp_path, extensions="tests.contract.own_method, tests.no_such_module")
