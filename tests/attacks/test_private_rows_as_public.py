"""Private records, or copies of them, are given as ``public=``: nothing is released then.

What public rows decide (bandwidth, bounds, transformation, method) costs nothing, so with private rows in
their place a claim would be wrong. The same object and views of it are recognised without a look at a value;
copies by their contents, for the owner's eyes, before anything is spent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.baselines import kme, mwem
from hushsum.errors import UsageError
from hushsum.methods import landmarks
from hushsum.records import are_copies
from tests.e2e.cli_process import Shell

RNG = np.random.default_rng(1)
RECORDS = RNG.normal(size=(3000, 3))
FRESH = RNG.normal(size=(400, 3))
BOX = (-4, 4)
KERNEL = hs.GaussianKernel(dim=3, bandwidth=1.0)
LABELS = (RECORDS[:, 0] > 0).astype(int)

COPIES: dict[str, Callable[[Any], Any]] = {
    "a copy": lambda X: X.copy(),
    "reversed": lambda X: X[::-1].copy(),
    "shuffled": lambda X: np.random.default_rng(2).permutation(X),
    "other numbers of bits": lambda X: X.astype(np.float32),
    "the first rows": lambda X: X[:300].copy(),
    "a sample": lambda X: X[np.random.default_rng(3).choice(len(X), 200, replace=False)],
    "with a negative zero": lambda X: np.where(X == 0.0, -0.0, X),
    "two thirds of the rows": lambda X: np.vstack([X[:200], FRESH[:100]]),
    "a list": lambda X: X.tolist(),
}


def frame(rows: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(np.asarray(rows), columns=["a", "b", "c"])


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_release_refuses_copies(copied: Callable[[Any], Any]) -> None:
    with pytest.raises(UsageError, match="copies of the records"):
        hs.release(RECORDS, epsilon=1.0, public=copied(RECORDS))


POINTS_GIVEN: dict[str, Callable[[Any, Any], Any]] = {
    "landmarks": lambda X, points: landmarks(
        X, KERNEL, bounds=(-4, 4), epsilon=1.0, points=50, public=points
    ),
    "kme": lambda X, points: kme(X, KERNEL, bounds=BOX, epsilon=1.0, points=points),
    "mwem": lambda X, points: mwem(X, KERNEL, bounds=BOX, epsilon=1.0, queries=points, bins=8, rounds=2),
}


@pytest.mark.parametrize("method", POINTS_GIVEN.values(), ids=POINTS_GIVEN)
def test_methods_that_are_given_points_refuse_the_records(method: Callable[[Any, Any], Any]) -> None:
    """`landmarks` published 2000 of its records as they are, with a claim that said nothing of it."""
    for points in (RECORDS, RECORDS[:100], *(copied(RECORDS) for copied in COPIES.values())):
        with pytest.raises(UsageError, match="no part of the private records"):
            method(RECORDS, points)
    assert method(RECORDS, FRESH[:60]).claim.assumptions == ("the points that were given are public",)


def test_functions_that_are_read_with_public_points_say_so() -> None:
    tally = hs.fourier_features(KERNEL, features=30, bounds=BOX).add(RECORDS)
    f: Any = tally.release(epsilon=1.0, delta=1e-6)
    assert f.claim.assumptions == ()
    for made in (hs.releases.combine(f, FRESH), f.with_public_points(FRESH)):
        assert ["public" in each for each in made.claim.assumptions] == [True]
        assert "is public" in made.claim.sentence()


def test_a_release_refuses_a_copied_frame_whatever_its_order_of_columns() -> None:
    for public in (
        frame(RECORDS),
        frame(RECORDS)[["c", "a", "b"]],
        frame(RECORDS).sample(500, random_state=1),
    ):
        with pytest.raises(UsageError, match="copies of the records"):
            hs.release(frame(RECORDS), epsilon=1.0, public=public)


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_models_refuse_copies_and_spend_nothing(how: str) -> None:
    kept = frame(RECORDS)
    for public in (RECORDS.copy(), frame(RECORDS[:300])):
        model = hs.PrivateClassifier(epsilon=1.0, bounds=(-5, 5), classes=[0, 1], public=public)
        with pytest.raises(UsageError, match="copies of the records"):
            getattr(model, how)(kept if hasattr(public, "columns") else RECORDS, LABELS)
        assert not hasattr(model, "claim_")


def test_public_rows_that_are_others_pass() -> None:
    released = hs.release(RECORDS, epsilon=1.0, public=FRESH)
    assert any("public" in each for each in released.claim.assumptions)
    # Less than half: somebody's own records may be among rows that everybody has.
    assert not are_copies(
        np.vstack([RECORDS[:100], FRESH[:300]]).astype(np.float32), RECORDS.astype(np.float32)
    )


def test_answers_that_agree_by_chance_pass_and_the_same_answers_do_not() -> None:
    answers = RNG.integers(0, 3, (2000, 2)).astype(np.float32)
    others = RNG.integers(0, 3, (300, 2)).astype(np.float32)
    assert not are_copies(others, answers)
    assert are_copies(answers[::-1].copy(), answers)
    assert not are_copies(answers[:0], answers)
    assert not are_copies(answers[:, :1], answers)


def test_a_copied_file_is_refused_in_another_spelling(tmp_path: Path) -> None:
    def write(name: str, rows: Any, spelled: str) -> str:
        lines = ["a,b,c", *(",".join(format(each, spelled) for each in row) for row in rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return str(tmp_path / name)

    private = write("private.csv", np.round(RECORDS, 3), ".3f")
    public = write("public.csv", np.round(RECORDS[:400], 3), ".5e")
    fresh = write("fresh.csv", np.round(FRESH, 3), ".3f")
    shell = Shell(tmp_path)
    release = ["release", private, "-o", "f.hush", "--epsilon", "1", "--kernel", "gaussian", "-y"]
    model = ["--bandwidth", "public", "--bounds", "-5:5,-5:5,-5:5", "-y"]
    fit = ["fit", "density", private, "-o", "f.hush", "--epsilon", "1", *model]
    for command in (release, fit):
        refused = shell.run(*command, "--public", public)
        assert refused.code == 2
        assert "copies of the records" in refused.err
        assert not (tmp_path / "f.hush").exists()
    assert shell.run(*release, "--public", fresh).code == 0


def test_a_synthesizer_compares_records_and_not_their_labels() -> None:
    with pytest.raises(UsageError, match="public"):
        hs.PrivateSynthesizer(bounds="public", public=RECORDS.copy()).fit(RECORDS)
