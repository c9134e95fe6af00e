from __future__ import annotations

import io
import json
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import (
    BudgetExhausted,
    ClaimError,
    CounterOverflow,
    FileRefused,
    HushsumError,
    SecretRefused,
    UsageError,
)
from hushsum.files import NumberGuard, SecretFile, state_folder
from hushsum.privacy import LAST_STEP, MOST_STEPS, Factorisation, StreamNoise
from hushsum.releases import NoisyTable
from hushsum.streams import step_covariance
from hushsum.streams._stream import StreamFile
from tests.exact_tallies import exact_table
from tests.ledger_fixtures import state
from tests.recording_budget import RecordingBudget

__all__ = ["state"]

KEY = bytes(range(32))


def small(**more: Any) -> hs.Tally:
    return hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=30, width=8, **more)


def started(**more: Any) -> hs.streams.Stream:
    given: dict[str, Any] = {"horizon": 10, "epsilon": 50.0, "delta": 1e-6, "insecure_noise_seed": 1}
    return hs.stream(more.pop("tally", None) or small(), **given | more)


def noted_steps(stream: hs.streams.Stream) -> Path:
    return state_folder() / "streams" / stream.id


def contents(function: NoisyTable | None) -> bytes:
    assert function is not None
    buffer = io.BytesIO()
    function.save(buffer)
    return buffer.getvalue()


def exact(*parts: object) -> np.ndarray:
    """The table of all records without noise."""
    tally = small()
    for part in parts:
        tally.add(part)
    return np.asarray(exact_table(tally))


DAYS = [[[0.1]] * 300, [[2.5]] * 200, [[0.1], [7.0]] * 100, [[3.0]] * 50]


def far(function: NoisyTable, table: np.ndarray) -> float:
    """The root mean square difference in standard deviations of the stated noise; near 1 if it is right."""
    return float(np.sqrt(((function.table - table) ** 2).mean() / function.cell_variance))


@pytest.mark.parametrize(
    "promise", [{"epsilon": 3.0, "delta": None}, {}, {"rho": 1.0, "epsilon": None, "delta": None}]
)
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("horizon", [10, None])
def test_every_step_shows_all_data_so_far_with_the_stated_noise(
    promise: dict[str, Any], relation: str, horizon: int | None
) -> None:
    stream = started(relation=relation, horizon=horizon, **promise)
    for t, day in enumerate(DAYS):
        f = stream.add(day).step()
        assert 0.75 < far(f, exact(*DAYS[: t + 1])) < 1.3
        assert abs(f.count - sum(map(len, DAYS[: t + 1]))) < 6 * f.count_stderr
        assert f.stream_step is not None
        assert (f.stream_step.step, f.stream_step.horizon, stream.released) == (t + 1, horizon, t + 1)
        assert f.claim == stream.claim
        assert f.count_stderr > 0, "the number of records is private under both relations"


@pytest.mark.parametrize("horizon", [10, None])
def test_windows_and_decays(horizon: int | None) -> None:
    window, decay = started(window=2, horizon=horizon), started(decay=0.5, horizon=horizon)
    for t, day in enumerate(DAYS):
        f, g = window.add(day).step(), decay.add(day).step()
        assert 0.75 < far(f, exact(*DAYS[max(0, t - 1) : t + 1])) < 1.3
        weights = [0.5 ** (t - s) for s in range(t + 1)]
        shown = sum(w * exact(DAYS[s]) for s, w in enumerate(weights))
        assert 0.75 < far(g, np.asarray(shown)) < 1.3
    assert "the last 2 steps" in str(f.describe())


def test_a_step_without_records_releases_too_and_the_horizon_ends() -> None:
    stream = started(horizon=3)
    functions = [stream.step() for _ in range(3)]
    assert len({contents(f) for f in functions}) == 3
    with pytest.raises(UsageError, match="all of its 3 steps"):
        stream.step()


def test_a_stream_without_a_horizon_has_a_plan_a_file_and_no_end(tmp_path: Path) -> None:
    more: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    plan = hs.streams.plan_stream(small(), **more)
    assert plan.horizon is None
    assert plan.steps[-1] == 1 << 24
    assert 6.5 < plan.ratio < 7.5, "at step 2²⁴; the best for that horizon has 6.3"
    stream = hs.stream(small(), path=tmp_path / "a.stream", **more)
    assert stream.step().noise.variance ** 0.5 == pytest.approx(plan.deviations[0], rel=1e-5)
    size = (tmp_path / "a.stream").stat().st_size
    stream.close()
    # A state that is as far as one can be.
    file = StreamFile(tmp_path / "a.stream", None)
    terms, state = file.read()
    state.step = LAST_STEP - 1
    file.write(terms, state)
    file.close()
    with hs.open_stream(tmp_path / "a.stream") as late:
        f = late.add(DAYS[0]).step()
        assert abs((tmp_path / "a.stream").stat().st_size - size) < 100, "the state does not grow"
        assert f.noise.variance**0.5 > 10 * plan.deviations[-1]
        assert "step 1099511627776: all steps so far" in str(f.describe())
        loaded = hs.load(io.BytesIO(contents(f)))
        assert isinstance(loaded, NoisyTable)
        assert contents(loaded) == contents(f)
        with pytest.raises(UsageError, match="all of its"):
            late.step()


def test_a_state_that_has_no_room_left_refuses_records() -> None:
    stream = started(horizon=None)
    stream._state.secret[0, 0] = 7 << 60
    stream.step()
    with pytest.raises(HushsumError, match=r"\w"):
        stream.add(DAYS[0])


def test_threads_step_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = started(horizon=4, removals=True)
    inside, go_on = threading.Event(), threading.Event()
    add_to = StreamNoise.add_to

    def slowly(noise: StreamNoise, output: Any, step: int, **options: Any) -> None:
        inside.set()
        assert go_on.wait(60)
        add_to(noise, output, step, **options)

    monkeypatch.setattr(StreamNoise, "add_to", slowly)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(stream.add(DAYS[0]).step)
        assert inside.wait(60)
        others = [pool.submit(stream.step), pool.submit(lambda: stream.remove(DAYS[0]).step())]
        go_on.set()
        found = [each.result(60).stream_step for each in (first, *others)]
    assert sorted(each.step for each in found if each is not None) == [1, 2, 3]


def test_removed_records_are_gone_and_cost_noise() -> None:
    stream = started(removals=True)
    stream.add(DAYS[0]).step()
    f = stream.remove(DAYS[0][:200]).add(DAYS[1]).step()
    assert 0.75 < far(f, exact(DAYS[0][:100], DAYS[1])) < 1.3
    assert abs(f.count - 300) < 6 * f.count_stderr
    assert f.noise.variance == pytest.approx(2 * started().step().noise.variance * _gain(f), rel=0.01)
    with pytest.raises(UsageError, match="removals"):
        started().remove(DAYS[0])


def _gain(function: NoisyTable) -> float:
    assert function.stream_step is not None
    noise = function.stream_step.noise
    second, first = noise.covariances([2, 1]).diagonal()
    return float(second / first)


def test_persons_are_capped_over_the_whole_horizon(tmp_path: Path) -> None:
    """Also after the stream was opened again, and a removal takes a place."""
    stream = started(tally=small(max_per_unit=2), removals=True, path=tmp_path / "a.stream", epsilon=500.0)
    assert stream.claim.records_per_unit == 2
    stream.add([[0.1]] * 3, units=["ann"] * 3).step()
    stream.close()
    stream = hs.open_stream(tmp_path / "a.stream")
    f = stream.add([[0.1]] * 40, units=["ann"] * 20 + ["bob"] * 20).step()
    assert abs(f.noisy_count - 4) <= 2
    f = stream.remove([[0.1]], units=["ann"]).step()
    assert abs(f.noisy_count - 4) <= 2, "ann has no place left"
    f = stream.add([[0.1]], units=["eve"]).remove([[0.1]], units=["eve"]).step()
    assert abs(f.noisy_count - 4) <= 2
    with pytest.raises(UsageError, match="persons"):
        stream.merge(small(max_per_unit=2))
    stream.close()


def test_a_tally_counted_elsewhere_is_merged_once() -> None:
    stream, tally = started(), small().add(DAYS[0])
    f = stream.merge(tally).step()
    assert 0.75 < far(f, exact(DAYS[0])) < 1.3
    with pytest.raises(hs.errors.IncompatibleTallies, match="same records"):
        stream.merge(tally)


def test_a_tally_with_removals_is_merged_where_they_are_declared(tmp_path: Path) -> None:
    stream, declared = started(), started(removals=True)
    stream.merge(small()).merge(small().add(DAYS[0])).step()
    removed = small().add(DAYS[1]).remove(DAYS[0][:50])
    removed.save(tmp_path / "a.tally")
    for tally in (removed, hs.load_tally(tmp_path / "a.tally"), small().merge(removed).add(DAYS[2])):
        with pytest.raises(UsageError, match="no record was removed"):
            stream.merge(tally)
    declared.add(DAYS[0]).step()
    f = declared.merge(removed).step()
    assert 0.75 < far(f, exact(DAYS[0][50:], DAYS[1])) < 1.3
    assert abs(f.count - 450) < 6 * f.count_stderr


def test_the_plan_is_what_the_steps_have(tmp_path: Path) -> None:
    plan = hs.streams.plan_stream(small(), horizon=365, epsilon=1.0, delta=1e-6)
    assert 2.9 < plan.ratio <= 3.1, "the target is 3.1 times the noise of one release"
    alone = small().release(epsilon=1.0, delta=1e-6)
    assert isinstance(alone, NoisyTable)
    assert plan.one_release**2 == pytest.approx(alone.noise.variance)
    stream = hs.stream(small(), horizon=365, epsilon=1.0, delta=1e-6, path=tmp_path / "a.stream")
    assert stream.step().noise.variance ** 0.5 == pytest.approx(plan.deviations[0], rel=1e-5)
    size = (tmp_path / "a.stream").stat().st_size
    assert plan.state_bytes < size < plan.state_bytes + 12_000
    stream.step()
    assert (tmp_path / "a.stream").stat().st_size - size < 100, "the state does not grow with the steps"
    stream.close()


@pytest.mark.parametrize("promise", [{}, {"epsilon": 3.0, "delta": None}, {"horizon": None}])
def test_released_files_say_their_step_and_are_read_back(promise: dict[str, Any], tmp_path: Path) -> None:
    stream = started(**promise)
    f, g = stream.add(DAYS[0]).step(), stream.step()
    f.save(tmp_path / "f.hush")
    loaded = hs.load(tmp_path / "f.hush")
    assert isinstance(loaded, NoisyTable)
    assert loaded.stream_step == f.stream_step
    assert contents(loaded) == contents(f)
    covariance = step_covariance(loaded, g)
    assert 0 < covariance.cell < (f.noise.variance * g.noise.variance) ** 0.5
    with pytest.raises(UsageError, match="one stream"):
        step_covariance(f, started().step())
    alone = small().release(epsilon=1.0)
    assert isinstance(alone, NoisyTable)
    with pytest.raises(UsageError, match="one stream"):
        step_covariance(f, alone)


def test_a_file_whose_noise_does_not_keep_its_claim_is_refused() -> None:
    from dataclasses import replace

    f = started(rho=0.5, epsilon=None, delta=None).step()
    assert f.stream_step is not None
    noise = f.stream_step.noise
    smaller = replace(noise, table=replace(noise.table, parameter=noise.table.parameter * 16 / 25))
    table, count = smaller.at(1)
    unbounded = Factorisation(None, 20, ((1 << 24) - 1,), (4 << 24,), (0,))
    for wrong in (
        replace(f, stream_step=replace(f.stream_step, noise=smaller), noise=table, count_noise=count),
        replace(f, stream_step=replace(f.stream_step, step=2)),
        replace(f, stream_step=replace(f.stream_step, noise=replace(noise, strategy=unbounded), step=2**39)),
        replace(f, noise=replace(f.noise, parameter=f.noise.parameter / 2)),
        replace(f, stream_step=None),
    ):
        with pytest.raises(FileRefused):
            hs.load(io.BytesIO(contents(wrong)))


def test_covariances_of_steps_are_those_of_their_noise() -> None:
    """Of 240 cells in 40 streams, within six standard errors: a right statement fails once in 10⁸."""
    steps, seen = 3, []
    for seed in range(40):
        stream = started(horizon=steps, epsilon=4.0, insecure_noise_seed=seed)
        functions = [stream.step() for _ in range(steps)]
        seen.append([f.table.reshape(-1) for f in functions])
    noise = np.array(seen, float).transpose(1, 0, 2).reshape(steps, -1)
    for s in range(steps):
        for t in range(s, steps):
            stated = step_covariance(functions[s], functions[t]).cell
            product = noise[s] * noise[t]
            assert abs(product.mean() - stated) < 6 * product.std() / len(product) ** 0.5 + 0.1


class TestSecrets:
    def test_a_stream_shows_nothing_and_does_not_travel(self) -> None:
        stream = started().add([[123.25]] * 77)
        assert "77" not in repr(stream)
        with pytest.raises(SecretRefused):
            pickle.dumps(stream)

    def test_a_forked_process_cannot_continue_it(self) -> None:
        stream = started()
        child = os.fork()
        if child == 0:
            try:
                stream.step()
            except SecretRefused:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    def test_the_file_is_encrypted(self, tmp_path: Path) -> None:
        path = tmp_path / "a.stream"
        stream = started(path=path, encryption_key=KEY)
        stream.notes["secret"] = "whale.csv"
        stream.add(DAYS[0]).save()
        stream.close()
        assert b"whale" not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0
        with pytest.raises(UsageError, match="encrypted"):
            hs.open_stream(path)
        with pytest.raises(FileRefused, match="key"):
            hs.open_stream(path, encryption_key=bytes(32))
        with hs.open_stream(path, encryption_key=KEY) as again:
            assert again.notes == {"secret": "whale.csv"}


class TestFiles:
    def test_a_stream_continues_as_if_nothing_had_happened(self, tmp_path: Path) -> None:
        whole, parts = started(window=2), started(window=2, path=tmp_path / "a.stream")
        for day in DAYS:
            expected = whole.add(day).step()
            parts.add(day).save()
            parts.close()
            parts = hs.open_stream(tmp_path / "a.stream")
            found = parts.step()
            assert np.array_equal(found.table, expected.table)
            assert found.noisy_count == expected.noisy_count
            parts.close()
            parts = hs.open_stream(tmp_path / "a.stream")
            assert contents(parts.latest) == contents(found), "the last step, with the same bytes"
        parts.close()

    def test_an_older_copy_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.stream"
        stream = started(path=path)
        stream.step()
        before = path.read_bytes()
        stream.step()
        stream.close()
        path.write_bytes(before)
        with pytest.raises(FileRefused, match="older copy"):
            hs.open_stream(path)
        assert noted_steps(stream).read_text() == "2\n"

    def test_two_copies_do_not_release_the_same_step(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "a.stream", tmp_path / "b.stream"
        stream = started(path=path)
        copy.write_bytes(path.read_bytes())
        with pytest.raises(UsageError, match="another copy"):
            hs.open_stream(copy)
        stream.step()
        noted_steps(stream).write_text("2\n")
        with pytest.raises(FileRefused, match="older copy"):
            stream.step()
        noted_steps(stream).write_text("1\n")
        assert stream.step().stream_step is not None, "a step that was refused has drawn nothing"
        stream.close()
        with pytest.raises(FileRefused, match="older copy"):
            hs.open_stream(copy)

    def test_a_step_that_was_written_and_not_noted_is_noted_before_it_is_seen(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "a.stream"
        stream = started(path=path)
        before = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(NumberGuard, "note", _full_disk)
            with pytest.raises(OSError, match="full"):
                stream.step()
            with pytest.raises(UsageError, match="interrupted"):
                _ = stream.latest
            stream.close()
            with pytest.raises(OSError, match="full"):
                hs.open_stream(path)
        with hs.open_stream(path) as again:
            assert again.latest is not None
        path.write_bytes(before)
        with pytest.raises(FileRefused, match="older copy"):
            hs.open_stream(path)

    def test_a_stream_is_open_once(self, tmp_path: Path) -> None:
        stream = started(path=tmp_path / "a.stream")
        with pytest.raises(UsageError, match="another process"):
            hs.open_stream(tmp_path / "a.stream")
        stream.close()
        with pytest.raises(UsageError, match="closed"):
            stream.step()
        hs.open_stream(tmp_path / "a.stream").close()
        with pytest.raises(UsageError, match="must not exist"):
            started(path=tmp_path / "a.stream")
        with pytest.raises(UsageError, match="memory"):
            started().save()

    def test_a_step_that_cannot_be_written_is_not_shown(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream = started(path=tmp_path / "a.stream")
        monkeypatch.setattr(SecretFile, "write", _full_disk)
        with pytest.raises(OSError, match="full"):
            stream.step()
        monkeypatch.undo()
        with pytest.raises(UsageError, match="interrupted"):
            stream.step()
        with pytest.raises(UsageError, match="interrupted"):
            _ = stream.latest
        stream.close()
        monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
        with hs.open_stream(tmp_path / "a.stream") as again:
            assert again.released == 0

    def test_changed_bytes_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.stream"
        started(path=path).close()
        data = bytearray(path.read_bytes())
        for place in range(0, len(data), max(1, len(data) // 40)):
            changed = bytearray(data)
            changed[place] ^= 1
            path.write_bytes(changed)
            with pytest.raises(FileRefused):
                hs.open_stream(path)


def _full_disk(*_: object, **__: object) -> None:
    raise OSError("full")


class TestSpending:
    def test_the_claim_is_paid_once_at_the_start(self) -> None:
        budget = RecordingBudget()
        stream = hs.stream(small(), horizon=5, epsilon=2.0, delta=1e-6, budget=budget)
        assert budget.steps == ["debited", "drawn", "staged", "published"]
        for _ in range(5):
            stream.step()
        assert budget.left == 8.0
        claim, subject = budget.requested[0]
        assert claim == stream.claim
        assert json.loads(json.dumps(subject))["stream"]["horizon"] == 5
        with pytest.raises(BudgetExhausted):
            hs.stream(small(), horizon=5, epsilon=9.0, delta=1e-6, budget=budget)

    @pytest.mark.parametrize("crash", ["drawn", "staged", "published"])
    def test_a_start_that_crashed_is_repeated_without_paying_again(self, crash: str, tmp_path: Path) -> None:
        budget = RecordingBudget(fail_at=crash)
        more: dict[str, Any] = {"budget": budget, "idempotency_key": "k", "insecure_noise_seed": None}
        with pytest.raises(OSError, match="crash"):
            started(path=tmp_path / "a.stream", **more, epsilon=2.0)
        budget.fail_at = ""
        stream = started(path=tmp_path / "a.stream", **more, epsilon=2.0)
        assert budget.left == 8.0
        stream.add(DAYS[0]).step()
        stream.close()

    def test_a_key_without_a_file_is_refused_before_anything_is_paid(self) -> None:
        # Two attempts at once would both be given the one payment, and draw each step twice.
        budget = RecordingBudget()
        with pytest.raises(UsageError, match="path"):
            hs.stream(small(), horizon=5, epsilon=2.0, delta=1e-6, budget=budget, idempotency_key="k")
        assert budget.steps == []

    def test_bytes_of_another_release_are_refused(self, tmp_path: Path) -> None:
        budget = RecordingBudget()
        more: dict[str, Any] = {
            "budget": budget,
            "idempotency_key": "k",
            "insecure_noise_seed": None,
            "epsilon": 2.0,
        }
        started(path=tmp_path / "a.stream", **more).close()
        with pytest.raises(UsageError, match="another release"):
            started(path=tmp_path / "b.stream", **more, window=3)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "what"),
        [
            ({"horizon": 0}, "horizon"),
            ({"horizon": MOST_STEPS + 1}, "horizon"),
            ({"horizon": 2.5}, "horizon"),
            ({"window": 3, "decay": 0.5}, "window"),
            ({"rows": 31}, "rows"),
            ({"rows": "some"}, "rows"),
            ({"unit": "person"}, "unit"),
            ({"delta": 0.01}, "delta"),
            ({"count_share": 1.5}, "count_share"),
        ],
    )
    def test_parameters(self, given: dict[str, Any], what: str) -> None:
        with pytest.raises((UsageError, ClaimError), match=what):
            started(**given)

    def test_a_tally_with_records(self) -> None:
        with pytest.raises(UsageError, match="empty"):
            started(tally=small().add(DAYS[0]))

    def test_fewer_rows_are_published(self) -> None:
        assert started(rows=10).step().rows == 10

    def test_sums_that_could_leave_their_bits(self) -> None:
        tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(0, 1))
        stream = started(tally=tally, epsilon=1.0)
        stream._state.tally._moves = stream._state.tally._room - 10
        with pytest.raises(CounterOverflow):
            stream.add([[0.5]])
