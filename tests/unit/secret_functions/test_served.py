"""One path, for ever: in any order, thread, process, life."""

from __future__ import annotations

import copy
import math
import pickle
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import (
    ClaimError,
    DataRefused,
    FileRefused,
    LedgerUnavailable,
    QuestionsSpent,
    SecretRefused,
    UsageError,
)
from hushsum.files import NumberGuard
from hushsum.methods._feature_functions import HingeSolution
from hushsum.privacy import Promise, path_scale
from hushsum.secret_functions import (
    FreshAnswers,
    GaussianPath,
    SecretFunction,
    ServedFunction,
    SqliteStore,
    answer_once,
    density_function,
    gaussian_process_function,
    kernel_svm_functions,
    reopen,
    serve,
)
from hushsum.secret_functions import _secret_function as secret_functions
from tests.forked import processes
from tests.recording_budget import RecordingBudget

KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.2)
X = np.random.default_rng(3).uniform(0.0, 1.0, size=(400, 1))
SPEND: Any = {"epsilon": 1.0, "delta": 1e-6}


def function(records: NDArray[np.float64] = X, **options: Any) -> SecretFunction:
    return density_function(records, KERNEL, bounds=(0, 1), **options)


def served(path: Path, **options: Any) -> ServedFunction:
    return serve(function(), store=SqliteStore(path), **{**SPEND, **options})


def test_a_point_has_one_answer(tmp_path: Path) -> None:
    f = served(tmp_path / "answers.db")
    first = f([[0.3], [0.5], [0.3]])
    assert first[0] == first[2]
    assert f([[0.5]])[0] == first[1]
    assert f([[-0.0]]) == f([[0.0]])
    np.testing.assert_allclose(first, KERNEL.exact_sum(X, [[0.3], [0.5], [0.3]]), atol=6.0 * f.noise_stderr)


def test_answers_survive_a_restart_and_the_path_goes_on(tmp_path: Path) -> None:
    f = served(tmp_path / "answers.db")
    first = f(np.linspace(0.0, 1.0, 40)[:, None])
    again = served(tmp_path / "answers.db")
    assert np.array_equal(again(np.linspace(0.0, 1.0, 40)[:, None]), first)
    between = again([[0.5 / 39.0]])[0] - KERNEL.exact_sum(X, [[0.5 / 39.0]])[0]
    known = first[:2] - KERNEL.exact_sum(X, [[0.0], [1.0 / 39.0]])
    # The path is smooth: between two close points it is close to both, far closer than fresh noise would be.
    assert abs(between - known.mean()) < 0.02 * f.noise_stderr


def test_one_store_is_for_one_function(tmp_path: Path) -> None:
    served(tmp_path / "answers.db")([[0.5]])
    for other in ({"epsilon": 2.0}, {"most_questions": 7}, {"calibration": "as-published"}):
        with pytest.raises(UsageError, match="another function"):
            served(tmp_path / "answers.db", **other)
    with pytest.raises(UsageError, match="another function"):
        serve(function(X[1:]), store=SqliteStore(tmp_path / "answers.db"), **SPEND)
    (tmp_path / "text").write_text("no database at all, but a text of some length" * 20)
    with pytest.raises(FileRefused):
        served(tmp_path / "text")


def test_the_store_is_the_owners_alone(tmp_path: Path) -> None:
    served(tmp_path / "answers.db")([[0.5]])
    assert (tmp_path / "answers.db").stat().st_mode & 0o077 == 0


def test_a_ledger_is_debited_once_for_a_store(tmp_path: Path) -> None:
    budget = RecordingBudget()
    for _ in range(3):
        served(tmp_path / "answers.db", budget=budget)(np.linspace(0, 1, 9)[:, None])
    assert budget.left == 9.0
    assert len(budget.entries) == 1


def test_the_limit_is_clear_and_harms_nothing(tmp_path: Path) -> None:
    f = served(tmp_path / "answers.db", most_questions=10)
    known = f(np.linspace(0.0, 1.0, 8)[:, None])
    with pytest.raises(UsageError, match="at most 10 distinct points"):
        f([[0.01], [0.02], [0.03]])
    assert np.array_equal(f(np.linspace(0.0, 1.0, 8)[:, None]), known)
    f([[0.01], [0.02]])


def test_threads_agree(tmp_path: Path) -> None:
    f = served(tmp_path / "answers.db")
    at = np.random.default_rng(5).uniform(0.0, 1.0, (30, 1))
    answers: dict[int, NDArray[np.float64]] = {}

    def ask(which: int) -> None:
        order = np.random.default_rng(which).permutation(30)
        found = np.empty(30)
        for place in order:
            found[place] = f(at[[place]])[0]
        answers[which] = found

    threads = [threading.Thread(target=ask, args=(each,)) for each in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6
    assert all(np.array_equal(answers[0], each) for each in answers.values())


def _ask_in_process(path: str, seed: int, queue: Any) -> None:
    f = served(Path(path))
    at = np.linspace(0.0, 1.0, 25)[:, None]
    found = np.empty(25)
    for place in np.random.default_rng(seed).permutation(25):
        found[place] = f(at[[place]])[0]
    queue.put(found.tolist())


def test_processes_agree_and_continue_one_path(tmp_path: Path) -> None:
    context = processes()
    queue: Any = context.Queue()
    workers = [
        context.Process(target=_ask_in_process, args=(str(tmp_path / "answers.db"), seed, queue))
        for seed in range(3)
    ]
    for worker in workers:
        worker.start()
    found = [queue.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert found[0] == found[1] == found[2]
    path = np.array(found[0]) - KERNEL.exact_sum(X, np.linspace(0.0, 1.0, 25)[:, None])
    assert np.abs(np.diff(path)).max() < 0.6 * np.abs(path).max() + 1.0, "one smooth path, not three"


def test_a_turn_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    f = served(tmp_path / "answers.db")
    f([[0.2]])

    def full(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr("hushsum.secret_functions._secret_function._SqliteSession.append", full)
        with pytest.raises(OSError, match="disk full"):
            f([[0.4]])
    answer = f([[0.4]])
    assert served(tmp_path / "answers.db")([[0.4]]) == answer


def test_it_is_no_file_and_shows_nothing(tmp_path: Path) -> None:
    f = served(tmp_path / "answers.db")
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        for each in (f, f._function, f._path, f._store):
            with pytest.raises(SecretRefused):
                leave(each)
    with pytest.raises(SecretRefused, match="not a file"):
        f.save("f.hush")
    assert "CONFIDENTIAL" in repr(f._function) + repr(f._path) + repr(f._store)
    assert f.claim.arithmetic == "real arithmetic"


def test_sensitivities_by_relation_and_calibration() -> None:
    assert function().sensitivity == 1.0
    replaced = function(relation="replace")
    assert replaced.sensitivity == pytest.approx(math.sqrt(2.0))
    assert replaced.scale == pytest.approx(1.0 / (400 * 0.2 * math.sqrt(2 * math.pi)))
    analytic, published = (
        serve(function(), **SPEND, calibration=each).noise_stderr for each in ("analytic", "as-published")
    )
    assert analytic == pytest.approx(4.2245, rel=1e-3)
    assert published == pytest.approx(math.sqrt(2.0 * math.log(2e6)))
    with pytest.raises(ClaimError, match="delta"):
        serve(function(), epsilon=1.0, delta=0.0)
    with pytest.raises(ClaimError, match="delta"):
        serve(function(), epsilon=1.0, delta=0.01)


def test_a_served_posterior_is_scikit_learns_and_its_sensitivity_exact() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    inputs, targets = X[:60], np.sin(5.0 * X[:60, 0])
    f = gaussian_process_function(inputs, targets, KERNEL, bounds=(0, 1), target_bounds=(-1, 1), noise=0.3)
    at = np.linspace(0.0, 1.0, 11)[:, None]
    peer = GaussianProcessRegressor(RBF(0.2), alpha=0.09, optimizer=None).fit(inputs, targets)
    np.testing.assert_allclose(f.at(f.prepared(at)), peer.predict(at), atol=1e-5)
    gram = KERNEL.similarity(inputs, inputs)
    moves, points = [], []
    for record in range(60):
        low, high = targets.copy(), targets.copy()
        low[record], high[record] = -1.0, 1.0
        ends = [
            gaussian_process_function(inputs, each, KERNEL, bounds=(0, 1), target_bounds=(-1, 1), noise=0.3)
            for each in (low, high)
        ]
        change = ends[1].weights - ends[0].weights
        moves.append(float(np.sqrt(change @ gram @ change)))
        points.append(
            float(np.abs(ends[1].at(ends[1].prepared(at)) - ends[0].at(ends[0].prepared(at))).max())
        )
    assert max(moves) == pytest.approx(f.sensitivity, rel=1e-5)
    assert max(points) <= f.pointwise * (1.0 + 1e-9)


def test_a_machine_that_misses_its_gap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfinished(gram: object, number: int, c: float, *, gap: float) -> HingeSolution:
        return HingeSolution(np.full(number, c / 2.0), 2.0 * gap)

    monkeypatch.setattr(secret_functions, "solve_hinge", unfinished)
    with pytest.raises(DataRefused, match=r"C must allow .* got 30"):
        kernel_svm_functions(X, X[:, 0] > 0.5, 2, KERNEL, bounds=(0, 1), C=30.0)


@pytest.mark.parametrize("once", [True, False])
def test_answers_with_noise_of_their_own_show_no_lattice_around_the_exact_value(once: bool) -> None:
    """The answers without a record cannot be recognised by noise in whole steps; they have a public step.

    Two in a hundred are within 10⁻² of whole; 40 of 300 are not seen in 10¹⁵ seeds.
    """
    f, at = function(), np.array([[0.3]])
    exact = f.at(f.prepared(at))[0]
    if once:
        sigma = path_scale(f.sensitivity, Promise.of(**SPEND))
        answers = [answer_once(f, at, **SPEND, insecure_noise_seed=seed).values[0] for seed in range(300)]
        unit = sigma * math.sqrt(1.0 + 1e-8) * 2.0**-30
    else:
        fresh = FreshAnswers(f, answers=300, **SPEND, insecure_noise_seed=1)
        sigma, answers = fresh.noise_stderr, list(fresh(np.repeat(at, 300, axis=0)))
        unit = sigma * 2.0**-30
    steps = (np.array(answers) - exact) / unit
    assert np.count_nonzero(np.abs(steps - np.rint(steps)) < 1e-2) < 40
    public = 2.0 ** (math.floor(math.log2(sigma)) - 10)
    assert np.array_equal(np.array(answers) / public, np.rint(np.array(answers) / public))


def test_served_machines_share_their_noise() -> None:
    plane = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    kernel = hs.GaussianKernel(dim=2, bandwidth=0.5)
    codes = np.digitize(plane[:, 0], [-0.3, 0.3])
    three = kernel_svm_functions(plane, codes, 3, kernel, bounds=(-1, 1), C=30.0)
    two = kernel_svm_functions(plane, codes > 1, 2, kernel, bounds=(-1, 1), C=30.0)
    assert (len(three), len(two)) == (3, 1)
    assert three[0].sensitivity == pytest.approx(math.sqrt(3.0) * two[0].sensitivity)
    scores = np.stack([each.at(each.prepared(plane)) for each in three], axis=1)
    assert (scores.argmax(axis=1) == codes).mean() > 0.9


def test_an_answer_that_was_not_kept_is_never_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody reads while an answer is to be kept, until SQLite gives up: COMMIT fails, not BEGIN."""
    monkeypatch.setattr("hushsum.secret_functions._secret_function._WAIT_SECONDS", 0.05)
    path = tmp_path / "answers.db"
    f = served(path)
    first = f([[0.5]])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM answers").fetchone()
    for _ in range(2):
        with pytest.raises(FileRefused, match="nothing new was returned"):
            f([[0.3]])
    assert f([[0.5]]) == first
    reader.execute("ROLLBACK")
    reader.close()
    reported = f([[0.3], [0.7]])
    assert np.array_equal(served(path)([[0.3], [0.7]]), reported)


def test_a_refused_point_costs_no_work_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = np.linspace(0.0, 1.0, 20)[:, None]
    f = served(tmp_path / "answers.db", most_questions=20)
    reported = f(at)
    reopened = served(tmp_path / "answers.db", most_questions=20)

    def work(*_: object) -> Any:
        raise AssertionError("the path was factored again")

    monkeypatch.setattr(GaussianPath, "_rows", work)
    for each in (f, reopened):
        for new in (2.0, 3.0, 2.0):
            with pytest.raises(QuestionsSpent):
                each([[new], [0.0]])
        assert np.array_equal(each(at), reported)
    assert len(f._path) == 20


class Notebook:
    """A rollback guard in memory."""

    def __init__(self) -> None:
        self.number = 0

    def known(self) -> int:
        return self.number

    def note(self, number: int) -> None:
        self.number = max(number, self.number)


def test_an_older_copy_of_the_store_is_refused(tmp_path: Path) -> None:
    path, promise = tmp_path / "answers.db", Promise.of(**SPEND)
    served(path)([[0.1]])
    older = path.read_bytes()
    notes = Notebook()
    f = reopen(function(), SqliteStore(path), promise, rollback_guard=notes)
    reported = f([[0.2]])
    assert notes.number == 2
    newer = path.read_bytes()
    path.write_bytes(older)
    with pytest.raises(FileRefused, match="fewer than were returned"):
        reopen(function(), SqliteStore(path), promise, rollback_guard=notes)
    path.write_bytes(newer)
    assert reopen(function(), SqliteStore(path), promise, rollback_guard=notes)([[0.2]]) == reported


def test_an_older_copy_of_the_store_is_refused_from_python_too(tmp_path: Path, state: Path) -> None:
    path = tmp_path / "answers.db"
    served(path)
    empty = path.read_bytes()
    first = served(path)([[0.1]])
    older = path.read_bytes()
    served(path)([[0.2]])
    newest = path.read_bytes()
    for earlier in (empty, older):
        path.write_bytes(earlier)
        with pytest.raises(FileRefused, match="fewer than were returned"):
            served(path)
        with pytest.raises(FileRefused, match="fewer than were returned"):
            reopen(function(), SqliteStore(path), Promise.of(**SPEND))
    path.write_bytes(newest)
    assert served(path)([[0.1]]) == first
    # On another machine nothing is known, unless the notes came along.
    shutil.move(state, tmp_path / "elsewhere")
    with pytest.raises(FileRefused, match="newest copy"):
        served(path)
    shutil.move(tmp_path / "elsewhere", state)
    assert served(path)([[0.1]]) == first


def test_an_answer_that_was_kept_and_not_noted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.db"
    note = NumberGuard.note

    def dies(guard: NumberGuard, number: int) -> None:
        if number:
            raise KeyboardInterrupt
        note(guard, number)

    with monkeypatch.context() as patch:
        patch.setattr(NumberGuard, "note", dies)
        with pytest.raises(KeyboardInterrupt):
            served(path)([[0.1]])
    assert served(path)([[0.1]]) == served(path)([[0.1]])


def test_an_older_copy_put_under_a_running_function_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    f = served(path)
    f([[0.1]])
    older = path.read_bytes()
    f([[0.2]])
    store: Any = f._store
    store.close()
    path.write_bytes(older)
    with pytest.raises(FileRefused, match="fewer than were returned"):
        f([[0.2]])


def test_nothing_is_reported_that_the_guard_did_not_note(tmp_path: Path) -> None:
    class Away(Notebook):
        def note(self, number: int) -> None:
            raise LedgerUnavailable("the database is away; ask again")

    path, promise = tmp_path / "answers.db", Promise.of(**SPEND)
    served(path)([[0.1]])
    f = reopen(function(), SqliteStore(path), promise, rollback_guard=Away())
    for point in (0.1, 0.2, 0.2):
        with pytest.raises(LedgerUnavailable):
            f([[point]])
