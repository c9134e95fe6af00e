"""``hushsum fit`` and ``hushsum predict``: models from files to files, and what goes wrong on the way.

The two classes are eight deviations apart: at ε = 1 with 1,200 records each, a prediction at a centre is
wrong in fewer than one run of 10⁹.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.e2e.cli_process import COMMAND, Shell, environment
from tests.e2e.conftest import QuickShell
from tests.e2e.test_cli_processes import _on_a_terminal

RECORDS = 2387
"""A number that occurs nowhere by chance, so that a printed count would be seen."""
LABELS = ("ill", "well")
FIT = ("--epsilon", "1", "--columns", "a,b")


def write_records(folder: Path) -> None:
    random = np.random.default_rng(0)
    ill = random.integers(0, 2, RECORDS)
    points = np.where(ill[:, None], 0.4, -0.4) + 0.1 * random.standard_normal((RECORDS, 2))
    names = [LABELS[0] if each else LABELS[1] for each in ill]
    columns: dict[str, Any] = {"a": points[:, 0], "b": points[:, 1], "flag": ill, "state": names}
    pa.parquet.write_table(pa.table(columns), folder / "visits.parquet")
    with (folder / "visits.csv").open("w") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*(list(column) for column in columns.values()), strict=True))
    (folder / "requested.csv").write_text("name,b,a\nfirst,0.4,0.4\nsecond,-0.4,-0.4\n")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, quick_command: Path) -> Path:
    """A folder with records, and models that the command line made of them."""
    folder = tmp_path_factory.mktemp("fitted")
    write_records(folder)
    shell = Shell(folder, [quick_command])
    classes = ("--target", "state", "--classes", "well,ill")
    shell.ok("fit", "classifier", "visits.csv", *FIT, *classes, "-o", "state.hush")
    shell.ok("fit", "modes", "visits.parquet", *FIT, "--bandwidth", "0.3", "-o", "modes.hush")
    return folder


@pytest.fixture
def desk(fitted: Path, tmp_path: Path, quick_command: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A fresh copy of that folder to work in, with a state folder of its own."""
    folder = tmp_path / "desk"
    shutil.copytree(fitted, folder)
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    return Shell(folder, [quick_command])


@pytest.fixture
def swift(
    desk: Shell, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> QuickShell:
    return QuickShell(desk.folder, monkeypatch, capfdbinary)


def answers(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_classifier_from_file_to_answers(swift: QuickShell) -> None:
    reported = answers(swift.ok("predict", "state.hush", "requested.csv").text)
    assert [row["prediction"] for row in reported] == ["ill", "well"]
    assert list(reported[0]) == ["a", "b", "prediction", "probability_ill", "probability_well"]
    assert float(reported[0]["probability_ill"]) + float(reported[0]["probability_well"]) == pytest.approx(
        1.0
    )
    same = swift.ok("predict", "state.hush", "requested.csv", "--json").json["answers"]
    assert [row["prediction"] for row in same] == ["ill", "well"]
    assert same[0]["at"] == [0.4, 0.4]


def test_points_with_decimal_commas(swift: QuickShell) -> None:
    (swift.folder / "commas.csv").write_text("a;b\n0,4;0,4\n-0,4;-0,4\n")
    refused = swift.run("predict", "state.hush", "commas.csv")
    assert refused.code == 6
    assert "give --decimal ," in refused.err
    reported = answers(swift.ok("predict", "state.hush", "commas.csv", "--decimal", ",").text)
    assert [row["prediction"] for row in reported] == ["ill", "well"]


def test_answers_go_to_a_file_whole(swift: QuickShell) -> None:
    assert swift.ok("predict", "state.hush", "requested.csv", "-o", "out.csv").text == ""
    assert len(answers((swift.folder / "out.csv").read_text())) == 2
    (swift.folder / "half.csv").write_text("a,b\n0.1,0.2\n" + "0.1,0.2\n" * 200_000 + "0.1,nan\n")
    before = (swift.folder / "out.csv").read_bytes()
    assert "finite" in swift.refused(6, "predict", "state.hush", "half.csv", "-o", "out.csv")
    assert (swift.folder / "out.csv").read_bytes() == before


def test_labels_may_be_numbers_and_batches_many(swift: QuickShell) -> None:
    arguments = ("--target", "flag", "--classes", "0,1", "--json")
    made = swift.ok("fit", "classifier", "visits.parquet", *FIT, *arguments, "-o", "flag.hush").json
    assert made["model"] == "PrivateClassifier"
    assert made["claim"]["epsilon"] == 1.0
    assert made["assumptions"] == []
    assert [row["prediction"] for row in answers(swift.ok("predict", "flag.hush", "requested.csv").text)] == [
        "1",
        "0",
    ]


def test_undeclared_labels_are_an_assumption(swift: QuickShell) -> None:
    ended = swift.ok("fit", "classifier", "visits.csv", *FIT, "--target", "state", "-o", "x.hush")
    assert "WARNING: the labels of y are taken as the list of classes" in ended.err
    assert "assumes that the list of classes is public" in ended.text


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        ("kmeans", ["prediction"]),
        ("mixture", ["prediction", "probability_0"]),
        ("modes", ["prediction"]),
        ("neighbors", ["prediction", "value", "stderr", "lower", "upper"]),
        ("sampler", ["decision"]),
        ("density", ["prediction", "value", "stderr", "lower", "upper", "score"]),
    ],
)
def test_models_without_a_target(swift: QuickShell, model: str, columns: list[str]) -> None:
    made = swift.ok("fit", model, "visits.csv", *FIT, "--seed", "3", "-o", "m.hush")
    assert "e^1 times" in made.text
    assert str(RECORDS) not in made.text + made.err
    reported = answers(swift.ok("predict", "m.hush", "requested.csv").text)
    assert list(reported[0]) == ["a", "b", *columns]


def test_the_parameters_of_a_model_are_options(swift: QuickShell) -> None:
    arguments = ("--n-modes", "1", "--method", "intersection", "--bounds", "-2:2")
    made = swift.ok("fit", "modes", "visits.csv", *FIT, *arguments, "--json", "-o", "m.hush").json
    assert made["parameters"]["n_modes"] == 1
    assert made["parameters"]["method"] == "intersection"
    assert made["parameters"]["bounds"] == [-2.0, 2.0]
    shown = swift.ok("show", "m.hush", "--json").json
    assert len(shown["arrays"]["modes"]) == 1


def test_show_says_what_a_model_is(swift: QuickShell) -> None:
    text = swift.ok("show", "modes.hush").text
    for part in ("e^1 times", "PrivateModes", "bandwidth 0.3", "heights"):
        assert part in text
    shown = swift.ok("show", "state.hush", "--json").json
    assert shown["kind"] == "released model"
    assert shown["classes"] == ["ill", "well"]
    assert shown["columns"] == ["a", "b"]
    assert str(RECORDS) not in text


def test_pipes(desk: Shell) -> None:
    records = (desk.folder / "visits.csv").read_bytes()
    made = desk.ok("fit", "modes", "-", *FIT, "-o", "-", stdin=records)
    assert made.out.startswith(b"\x89HUSH")
    assert "e^1 times" in made.err
    desk.ok("predict", "-", "requested.csv", stdin=made.out)
    points = (desk.folder / "requested.csv").read_bytes()
    assert len(answers(desk.ok("predict", "state.hush", "-", stdin=points).text)) == 2
    assert "both come from standard input" in desk.refused(2, "predict", "-", "-", stdin=points)


NEW = ("-o", "x.hush")
REFUSED: list[tuple[int, str, str]] = [
    (2, "model must be one of", "fit clairvoyant visits.csv FIT NEW"),
    (2, "no such option", "fit modes visits.csv FIT --colour 1 NEW"),
    (2, "no such option", "fit modes visits.csv FIT --contamination 0.1 NEW"),
    (2, "--power must be an integer of at least 1", "fit modes visits.csv FIT --power 0 NEW"),
    (2, "--n-modes must be an integer of at least 1", "fit modes visits.csv FIT --n-modes many NEW"),
    (2, "--target must be given for the classifier model", "fit classifier visits.csv FIT NEW"),
    (2, "--target must be left out: the modes model", "fit modes visits.csv FIT --target state NEW"),
    (2, "--classes must be left out", "fit modes visits.csv FIT --classes a,b NEW"),
    (2, "must not contain the target", "fit classifier visits.csv FIT --target a NEW"),
    (2, "got 'colour'", "fit modes visits.csv --epsilon 1 --columns colour NEW"),
    (2, "does not exist", "fit modes none.csv FIT NEW"),
    (2, "named twice", "fit modes visits.csv ./visits.csv FIT NEW"),
    (2, ".tally is for", "fit modes visits.csv FIT -o x.tally"),
    (2, "is an input too", "fit modes visits.csv FIT -o visits.csv"),
    (2, "must end in .hush", "fit modes visits.csv FIT -o requested.csv"),
    (2, "missing option '--epsilon'", "fit modes visits.csv NEW"),
    (2, "epsilon", "fit modes visits.csv --epsilon -1 NEW"),
    (2, "JSON cannot both", "fit modes visits.csv FIT --json -o -"),
    (6, "'state'", "fit modes visits.csv --epsilon 1 NEW"),
    (6, "declared classes only", "fit classifier visits.csv FIT --target state --classes well,sick NEW"),
    (2, "must be integers", "fit classifier visits.parquet FIT --target flag --classes no,yes NEW"),
    (6, "numbers with a fraction", "fit kernel-svc visits.csv --columns a --epsilon 1 --target b NEW"),
    (2, "--kernel must be one of", "fit kernel-svc visits.csv FIT --target state --kernel cosine NEW"),
    (
        2,
        "--target-bounds must be",
        "fit gaussian-process visits.csv --epsilon 1 --columns a --target b --target-bounds wide NEW",
    ),
    (2, "got another number; declare", "fit histogram visits.csv FIT --bounds 0:1,0:1,0:1 NEW"),
    (5, "is not a released", "predict requested.csv requested.csv"),
    (2, "must name columns of the data", "predict state.hush visits.csv --columns a,colour"),
    (2, "must have 2 columns", "predict state.hush visits.csv --columns a"),
    (2, "never replace", "predict state.hush requested.csv -o modes.hush"),
    (5, "holds a model", "query state.hush --at 0,0"),
]


@pytest.mark.parametrize(("code", "says", "command"), REFUSED, ids=lambda value: str(value)[:30])
def test_refusals(swift: QuickShell, code: int, says: str, command: str) -> None:
    short = {"FIT": FIT, "NEW": NEW}
    arguments = [each for word in command.split() for each in short.get(word, (word,))]
    assert says in swift.refused(code, *arguments)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0.1,nan,0,well", "'b' must be finite"),
        ("0.1,secretword,0,well", "'b'"),
        ("0.1,0.2,0,", "'state' must have a label"),
        ("0.1,0.2,0,secretword", "declared classes only"),
    ],
)
def test_one_bad_record_refuses_all_and_shows_nothing(swift: QuickShell, line: str, says: str) -> None:
    with (swift.folder / "visits.csv").open("a") as stream:
        stream.write(line + "\n")
    arguments = ("--target", "state", "--classes", "well,ill", "-o", "x.hush")
    sentence = swift.refused(6, "fit", "classifier", "visits.csv", *FIT, *arguments)
    assert says in sentence
    assert "secretword" not in sentence


def test_a_damaged_model_is_refused(swift: QuickShell) -> None:
    path = swift.folder / "state.hush"
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    swift.refused(5, "predict", "state.hush", "requested.csv")
    swift.refused(5, "show", "state.hush")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_fit_leaves_nothing(desk: Shell, number: signal.Signals, code: int) -> None:
    before = desk.files()
    process = subprocess.Popen(
        [*COMMAND, "fit", "modes", "-", "--epsilon", "1", "-o", "x.hush"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=desk.folder,
        env=environment(),
    )
    assert process.stdin is not None
    # Far more than the pipe holds: when the last byte is taken, reading has begun.
    process.stdin.write(b"a,b\n" + b"0.5,0.5\n" * 400_000)
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(timeout=300) == code
    out, err = process.communicate()
    assert out == b""
    assert err.decode() == ("interrupted; nothing was spent\n" if number == signal.SIGINT else "")
    assert desk.files() == before


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_a_terminal_is_requested(desk: Shell, answer: str, code: int) -> None:
    said, ended = _on_a_terminal(desk, answer, "fit", "modes", "visits.csv", *FIT, "-o", "t.hush")
    assert "e^1 times" in said
    assert "Release it?" in said
    assert ended == code
    assert os.path.exists(desk.folder / "t.hush") == (answer == "y")
    assert ("Nothing was released" in said) == (answer == "n")


def book(shell: Shell, *arguments: str) -> Any:
    return shell.ok("ledger", *arguments, "--ledger", "book.db", "--dataset", "visits", "--json").json


def test_the_same_command_does_not_spend_again(desk: Shell) -> None:
    desk.ok("ledger", "init", "--ledger", "book.db", "--dataset", "visits", "--epsilon", "1.5")
    paid = ("--ledger", "book.db", "--dataset", "visits")
    command = ("fit", "modes", "visits.csv", *FIT, *paid, "-o", "paid.hush")
    desk.ok(*command)
    first = (desk.folder / "paid.hush").read_bytes()
    again = desk.ok(*command)
    assert "nothing was spent" in again.text
    assert (desk.folder / "paid.hush").read_bytes() == first
    # Other bounds are another release, for which too little is left.
    sentence = desk.refused(3, *command[:-1], "more.hush", "--bounds", "-2:2")
    assert "visits" in sentence


def test_records_from_a_pipe_need_a_key_in_a_ledger(desk: Shell) -> None:
    desk.ok("ledger", "init", "--ledger", "book.db", "--dataset", "visits", "--epsilon", "1")
    paid = ("--ledger", "book.db", "--dataset", "visits")
    records = (desk.folder / "visits.csv").read_bytes()
    assert "--idempotency-key" in desk.refused(
        2, "fit", "modes", "-", *FIT, *paid, "-o", "x.hush", stdin=records
    )
    desk.ok("fit", "modes", "-", *FIT, *paid, "--idempotency-key", "first", "-o", "x.hush", stdin=records)


def test_bad_records_cost_nothing(desk: Shell) -> None:
    desk.ok("ledger", "init", "--ledger", "book.db", "--dataset", "visits", "--epsilon", "1")
    (desk.folder / "bad.csv").write_text("a,b\n1,2\n1,nan\n")
    paid = ("--ledger", "book.db", "--dataset", "visits")
    desk.refused(6, "fit", "modes", "bad.csv", *FIT, *paid, "-o", "x.hush")
    assert float(book(desk, "status")["spent"]["epsilon"]) == 0.0


def test_a_model_under_replace_is_reported_the_dataset_it_needs(swift: QuickShell) -> None:
    book = ("--ledger", "book.db", "--dataset", "visits")
    budget = ("--epsilon", "2", "--delta", "1e-5")
    learn = ("fit", "kernel-svc", "visits.csv", *FIT, "--delta", "1e-6", "--target", "state")
    fit = (*learn, "--classes", "well,ill", "-o", "machine.hush", "--ledger", "book.db")
    swift.ok("ledger", "init", *book, *budget)
    said = swift.run(*fit, "--dataset", "visits")
    assert said.code != 0
    assert "hushsum ledger init --relation replace" in said.err
    swift.ok("ledger", "init", "--ledger", "book.db", "--dataset", "other", *budget, "--relation", "replace")
    swift.ok(*fit, "--dataset", "other")
    swift.ok("plot", "machine.hush", "-o", "machine.png")


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "density", "broken.csv", *FIT, "-o", "made.hush"),
        ("synthesize", "broken.csv", "--number", "a=0:1", "--epsilon", "1", "-y", "-o", "made.csv"),
    ],
    ids=["fit", "synthesize"],
)
def test_a_dataset_of_persons_refuses_models_before_records_are_read(
    swift: QuickShell, command: tuple[str, ...]
) -> None:
    # Records that nobody could count: the refusal does not come from them.
    (swift.folder / "broken.csv").write_text("a,b\nx,y\n")
    budget = ("--epsilon", "8", "--delta", "1e-5", "--unit", "person")
    swift.ok("ledger", "init", "--ledger", "book.db", "--dataset", "people", *budget)
    said = swift.run(*command, "--ledger", "book.db", "--dataset", "people")
    assert said.code != 0
    assert "--max-per-unit" in said.err
    # One that declares how many records a person has takes them, for as many times the epsilon.
    capped = ("--ledger", "book.db", "--dataset", "capped")
    swift.ok("ledger", "init", *capped, *budget, "--max-per-unit", "3")
    (swift.folder / "broken.csv").write_text("a,b\n" + "0.5,0.5\n" * 50)
    swift.ok(*command, *capped)
    status = swift.ok("ledger", "status", *capped, "--json").json
    assert float(status["spent"]["epsilon"]) == 3.0
    # A person takes their own column, and costs no more than declared.
    (swift.folder / "broken.csv").write_text("a,b,who\n" + "".join(f"0.5,0.5,{i // 2}\n" for i in range(50)))
    persons = ("--unit-column", "who", "--max-per-unit", "2", "--ledger", "book.db", "--dataset", "people")
    claim = swift.ok(*command[:-1], f"persons{command[-1][4:]}", *persons, "--json").json
    stated = claim.get("release", claim)["claim"]
    assert (stated["unit"], stated["records_per_unit"], stated["epsilon"]) == ("person", 2, 1.0)
    # Without a ledger nobody knows whom the claim should protect.
    alone = swift.ok(*command[:-1], f"alone{command[-1][4:]}")
    assert "protects each record. If a person may have several" in alone.err


def test_remedies_can_be_typed(swift: QuickShell) -> None:
    swift.ok("tally", "visits.csv", "--columns", "a,b", "--bandwidth", "1", "--rows", "9", "-o", "v.tally")
    swift.ok("release", "v.tally", "--epsilon", "1", "-o", "v.hush")
    assert "hushsum query" in swift.run("predict", "v.hush", "requested.csv").err
    large = ("release", "v.tally", "--epsilon", "1", "--delta", "1e-3", "-o", "w.hush")
    for more in ((), ("--population", "1000")):
        said = swift.run(*large, *more)
        assert said.code != 0
        assert "--allow-large-delta" in said.err
