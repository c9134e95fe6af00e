"""A secret function on the disk, and reopening what was paid for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused, QuestionsSpent, UsageError
from hushsum.methods import GAP_REACHED
from hushsum.privacy import Promise
from hushsum.secret_functions import (
    SecretFunction,
    SqliteStore,
    density_function,
    gaussian_process_function,
    kernel_svm_functions,
    load_secret_functions,
    reopen,
    save_secret_functions,
    serve,
)

RNG = np.random.default_rng(5)
X = RNG.uniform(-1.0, 1.0, (60, 2))
KERNEL = hs.GaussianKernel(dim=2, bandwidth=0.5)
SPEND: Any = {"epsilon": 1.0, "delta": 1e-6}
PROMISE = Promise.of(epsilon=1.0, delta=1e-6)


def functions() -> list[SecretFunction]:
    """One of each kind."""
    codes = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    return [
        density_function(X, KERNEL, bounds=(-1, 1), relation="replace"),
        gaussian_process_function(X, X[:, 0], KERNEL, bounds=(-1, 1), target_bounds=(-2, 1), noise=1.0),
        *kernel_svm_functions(X, codes, 3, KERNEL, bounds=(-1, 1), C=5.0),
    ]


@pytest.mark.parametrize("key", [None, b"k" * 32])
def test_functions_come_back_bit_for_bit(tmp_path: Path, key: bytes | None) -> None:
    made = functions()
    path = tmp_path / "f.secret"
    save_secret_functions(made, path, about={"kind": "all"}, encryption_key=key)
    assert path.stat().st_mode & 0o077 == 0
    assert b"CONFIDENTIAL" in path.read_bytes()[:2000]
    back, about = load_secret_functions(path, encryption_key=key)
    assert about == {"kind": "all"}
    assert [each.facts() for each in back] == [each.facts() for each in made]
    assert [each.fingerprint(b"s") for each in back] == [each.fingerprint(b"s") for each in made]
    assert [each.assumptions for each in back] == [each.assumptions for each in made]
    assert all(each.assumptions == (GAP_REACHED,) for each in back[2:])
    for old, new in zip(made, back, strict=True):
        np.testing.assert_array_equal(old.at(old.prepared([[0.1, 0.2]])), new.at(new.prepared([[0.1, 0.2]])))


def test_an_encrypted_file_needs_its_key_and_shows_no_record(tmp_path: Path) -> None:
    path = tmp_path / "f.secret"
    made = functions()[:1]
    save_secret_functions(made, path, encryption_key=b"k" * 32)
    assert made[0].points.astype("<f8").tobytes()[:64] not in path.read_bytes()
    with pytest.raises(UsageError, match="encrypted"):
        load_secret_functions(path)
    with pytest.raises(FileRefused):
        load_secret_functions(path, encryption_key=b"x" * 32)


def test_a_damaged_file_and_one_of_another_kind_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.secret"
    save_secret_functions(functions()[:1], path)
    with pytest.raises(FileRefused, match="served"):
        hs.load(path)
    data = bytearray(path.read_bytes())
    for place in range(0, len(data), 97):
        broken = data.copy()
        broken[place] ^= 1
        path.write_bytes(broken)
        with pytest.raises(FileRefused):
            load_secret_functions(path)


def test_reopening_gives_the_same_answers_and_never_opens_a_new_store(tmp_path: Path) -> None:
    f = functions()[0]
    served = serve(f, store=SqliteStore(tmp_path / "a.db"), most_questions=3, **SPEND)
    reported = served([[0.1, 0.2], [0.3, 0.4]])
    again = reopen(f, SqliteStore(tmp_path / "a.db"), PROMISE, most_questions=3)
    np.testing.assert_array_equal(again([[0.1, 0.2], [0.3, 0.4]]), reported)
    assert again.claim == served.claim
    with pytest.raises(QuestionsSpent, match="at most 3"):
        again([[0.5, 0.6], [0.7, 0.8]])
    with pytest.raises(FileRefused, match="not the one that was opened"):
        reopen(f, SqliteStore(tmp_path / "lost.db"), PROMISE, most_questions=3)
    with pytest.raises(UsageError, match="another function"):
        reopen(f, SqliteStore(tmp_path / "a.db"), PROMISE, most_questions=4)
    with pytest.raises(UsageError, match="another function"):
        reopen(functions()[1], SqliteStore(tmp_path / "a.db"), PROMISE, most_questions=3)


def test_a_function_with_a_jitter_of_its_own_is_reopened_with_it(tmp_path: Path) -> None:
    f, store = functions()[0], SqliteStore(tmp_path / "a.db")
    jitter = 1e-6 * f.largest
    answers = serve(f, store=store, jitter=jitter, **SPEND)([[0.1, 0.2]])
    np.testing.assert_array_equal(reopen(f, store, PROMISE, jitter=jitter)([[0.1, 0.2]]), answers)
    with pytest.raises(UsageError, match="another function"):
        reopen(f, store, PROMISE)


def test_a_misspelt_argument_is_refused_and_spends_nothing() -> None:
    misspelt: dict[str, Any] = {"idempotency_kee": "spring"}
    with pytest.raises(TypeError, match="idempotency_kee"):
        serve(functions()[0], **SPEND, **misspelt)


class Stalling(SqliteStore):
    """Holds up whoever draws until somebody else has failed, or a while has passed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.drawing, self.failed = threading.Event(), threading.Event()
        self.stalls = False

    def answers(self, points: list[bytes]) -> list[float | None]:
        # As if it had looked before the other began to draw.
        return [None] * len(points)

    @contextmanager
    def session(self) -> Iterator[Any]:
        if threading.current_thread().name == "fails":
            raise OSError("the disk is full")
        with super().session() as session:
            yield _Stalled(session, self) if self.stalls else session


class _Stalled:
    def __init__(self, session: Any, store: Stalling) -> None:
        self._session, self._store = session, store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def find(self, point: bytes) -> Any:
        self._store.drawing.set()
        self._store.failed.wait(0.5)
        return self._session.find(point)


def test_a_question_that_fails_does_not_disturb_one_that_is_being_answered(tmp_path: Path) -> None:
    """A failure makes the function forget its path, which whoever draws meanwhile must not notice."""
    store = Stalling(tmp_path / "a.db")
    served = serve(functions()[0], store=store, insecure_noise_seed=1, **SPEND)
    before = served([[0.2, 0.2]])
    store.stalls = True
    reported: list[Any] = []

    def fail() -> None:
        store.drawing.wait()
        with pytest.raises(OSError, match="disk"):
            served([[0.9, 0.9]])
        store.failed.set()

    threads = [
        threading.Thread(target=lambda: reported.append(served([[0.2, 0.20001]]))),
        threading.Thread(target=fail, name="fails"),
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    # Along one path nearby answers agree far better than noise drawn anew would.
    assert abs(reported[0][0] - before[0]) < 0.01 * served.noise_stderr
