"""Figure 6 and table 4: exact Jaccard sums, the paper's form, and a run from edges to the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from papers.private_race import __main__ as private_race
from papers.private_race import graphs, graphs_page
from papers.private_race.curves import Curves, load_subject

import hushsum as hs
from hushsum.records import as_sets


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Graphs of 600 nodes in communities of 20, of which a node knows about half."""
    random = np.random.default_rng(3)
    first = np.repeat(np.arange(600), 10)
    second = first // 20 * 20 + random.integers(0, 20, len(first))
    for name in ("wiki_vote", "ego_facebook"):
        pq.write_table(pa.table({"src": first, "dst": second}), tmp_path / f"{name}.parquet")
    monkeypatch.setenv("HUSHSUM_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("products", [1, 7, 1 << 22])
def test_sparse_products_give_the_exact_sums(products: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_PRODUCTS_AT_A_TIME", products)
    random = np.random.default_rng(1)
    sets = [np.unique(random.integers(0, 40, random.integers(0, 9))) for _ in range(60)]
    queries = [np.unique(random.integers(0, 60, random.integers(0, 9))) for _ in range(12)]
    queries.append(np.empty(0, np.int64))
    batches = [as_sets(sets[:25]), as_sets(sets[25:])]
    expected = hs.JaccardKernel().similarity(sets, queries).sum(axis=0)
    assert np.allclose(graphs.exact_sums(batches, queries), expected)
    nothing = graphs.exact_sums(batches, [np.empty(0, np.int64)])
    assert nothing.tolist() == [sum(len(each) == 0 for each in sets)]


def test_the_paper_s_form_keeps_the_fold_and_rounds_down() -> None:
    """Without noise it answers the mean cell less one half; ours removes what strangers add."""
    tally = hs.race(hs.JaccardKernel(), rows=400, width=50)
    tally.add([[3 * i, 3 * i + 1] for i in range(500)])
    query = [np.array([3, 4])]
    f = graphs.released(tally, epsilon=graphs.NO_NOISE, rows=400)
    ours = f.sum(query)
    published = graphs.as_published(f, query, ours)
    assert published == pytest.approx(ours * 0.98 + 500 / 50 - 0.5)
    assert ours == pytest.approx(1.0, abs=1.0)


def test_noise_of_the_paper_s_form_is_that_of_its_theorem() -> None:
    """√(2R)/ε: no part of ε pays for a count."""
    tally = hs.race(hs.JaccardKernel(), rows=50, width=20_000).add([[1]])
    queries = [np.array([i]) for i in range(2, 4002)]
    without_noise = graphs.released(tally, epsilon=graphs.NO_NOISE, rows=50).sum(queries)
    answers = graphs.as_published(graphs.released(tally, epsilon=0.1, rows=50), queries, without_noise)
    # 4,000 answers from nearly disjoint cells: their deviation is within 8 % but for a chance below 1e-9, and
    # that of 20 % less noise is not.
    assert np.std(answers) == pytest.approx(np.sqrt(2 * 50) / 0.1, rel=0.08)


def test_linear_folds_differ_and_estimate_the_same_sums() -> None:
    sets = [[i, i + 1, i + 2] for i in range(300)]
    query = [np.array([100, 101, 102])]
    truth = hs.JaccardKernel().similarity(sets, query).sum()
    answers = []
    for kernel in (hs.JaccardKernel(), graphs.LinearFold()):
        tally = hs.race(kernel, rows=3000, width=64).add(sets)
        answers.append(float(graphs.released(tally, epsilon=graphs.NO_NOISE, rows=3000).sum(query)[0]))
    assert answers[0] != answers[1]
    assert np.allclose(answers, truth, atol=0.4)


def test_runs_from_edges_to_the_page(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out"
    arguments = ["--quick", "--output", str(output)]
    assert private_race.main(["graphs", "graph times", *arguments]) == 0
    subject = load_subject(output / "results" / "figure6.json")
    assert subject.repetitions == (2, 2)
    for name in ("wiki_vote", "ego_facebook"):
        at = {each: subject.at(name, graphs.PAPER, each) for each in subject.epsilons}
        # 100 rows have noise of deviation √200/ε, mean 0.8 of it; queries of a community share cells.
        assert at[0.1] == pytest.approx(0.8 * np.sqrt(200.0) / 0.1, rel=0.6)
        assert at[0.1] > 8.0 * at[10.0]
        assert subject.at(name, graphs.PLANNED, 0.1) < 0.5 * at[0.1]
        assert subject.at(name, graphs.HASHING, 1.0) < subject.at(name, graphs.ZERO, 1.0)
        assert subject.curves[name].version
    times = json.loads((output / "results" / "table4.json").read_text(encoding="utf-8"))
    assert times["graphs"]["wiki_vote"]["nodes"] == 600
    assert set(times["graphs"]["wiki_vote"]["seconds"]) == {
        "read", "count", "release", "query", "batch", "exact",
    }  # fmt: skip
    page = (output / "GRAPHS.md").read_text(encoding="utf-8")
    assert "| paper's form |" in page
    assert "| wiki-Vote: **all of it, pure ε** |" in page
    assert "Slashdot (published)" in page
    assert (output / "figures" / "figure6.png").stat().st_size > 10_000
    # What has results is not measured again, and a page needs no data.
    monkeypatch.setattr(graphs_page, "repetition", lambda *given, **more: pytest.fail("measured again"))
    assert private_race.main(["graphs", "--again", *arguments]) == 0
    monkeypatch.delenv("HUSHSUM_DATA")
    assert private_race.main(["--report", *arguments]) == 0


def test_a_missing_graph_is_reported_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHSUM_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"wiki_vote\.parquet is missing"):
        graphs.GRAPHS["wiki_vote"].edges()


def test_the_oracle_takes_the_best_number_of_rows_at_each_epsilon() -> None:
    curves = Curves(10, 20, {"10 rows": [[3.0, 5.0], [5.0, 7.0]], "100 rows": [[9.0, 1.0], [9.0, 1.0]]})
    mean, error, rows = graphs_page.best_rows(curves)
    assert mean.tolist() == [4.0, 1.0]
    assert error.tolist() == pytest.approx([1.0, 0.0])
    assert rows == [10, 100]
