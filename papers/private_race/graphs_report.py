"""GRAPHS.md: figure 6 and table 4 from the JSON results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from papers.data import marked
from papers.private_race import graphs
from papers.private_race.curves import Curves, Subject, load_subject
from papers.private_race.data import Floats
from papers.private_race.drawing import ORANGE, SKY, Line, draw_subject
from papers.private_race.tables import markdown_table

from hushsum.plotting.figure import BLUE, FAINT, INK, VERMILION

BEST: Final = "best number of rows, by oracle"
LINES: Final = (
    Line(graphs.PAPER, "paper's form, R = 2,000", INK, "-", "s"),
    Line(graphs.CHOSEN, "ours, rows by default", ORANGE, "-", "v"),
    Line(graphs.PLANNED, "ours, rows planned on public nodes", BLUE, "-", "o", 2.2),
    Line(graphs.GAUSSIAN, "ours, 2,000 rows, δ = 1e-6", SKY, "--", "D"),
    Line(graphs.HASHING, "hashing alone, no noise", FAINT, ":", ""),
    Line(graphs.ZERO, "answering 0 everywhere", VERMILION, "-.", "", 1.2),
)
PUBLISHED_TIMES: Final = (
    ("Friendster", "65M", "1.8B", "18.1 min", "164 µs"),
    ("Google Plus", "72.3K", "13M", "31 s", "238 µs"),
    ("Slashdot", "82.2K", "948K", "25 s", "157 µs"),
)
"""Table 4; 90 threads. Friendster's number of nodes is from the text, since the table leaves it out."""

_TITLES: Final = {each.name: each.title for each in graphs.GRAPHS.values()}

_OPENING: Final = """\
# Graphs: figure 6 and table 4

Coleman and Shrivastava (CCS 2021), section 6, on the graphs of the Stanford Network Analysis Project that are
at hand. Slashdot is one of the paper's three; Google Plus and Friendster are not here
(`benchmarks/large_graph.py` runs a generated graph of Friendster's size).

```
python -m papers.data                                 # the data; see ../README.md
python -m papers.private_race.graphs_run              # everything; resumes where it stopped
python -m papers.private_race.graphs_run times        # table 4 alone, in one run
python -m papers.private_race.graphs_run report       # this page again, from the JSON alone
python -m papers.private_race.graphs_run --quick      # two small graphs and few rows, into build/private_race
```

- A record is a node: the set of its neighbours, as `hs.read_edges` reads it. Slashdot and wiki-Vote are
  directed, and a node has the neighbours that its edges lead to; a node that no edge leaves is the empty
  set. Self-loops are left out.
- The claim protects one adjacency row, present or absent, as in the paper.
- Queries are 2,000 nodes with neighbours, drawn at random, the same ones in every repetition. Errors are
  against the exact sums of Jaccard similarities over all nodes, by sparse products. A query is itself a
  record, so no sum is below 1.
- Every repetition has its own public hash functions and noise; ± is one standard error over repetitions.
"""

_METHODS: Final = """\
**The forms.** All have tables of W = 100,000 cells.

- *Paper's form*: R = 2,000 rows, Laplace noise of scale R/ε in every cell, rounded down; the mean over rows
  is the answer, with what the fold adds (N/W) left in.
- *Ours, 2,000 rows*: noise on integers without rounding down, the fold removed with a noisy count that takes
  2 % of ε.
- *Ours, rows by default*: `tally.release(epsilon=…)`, which publishes as many rows as suit ε and the noisy
  count for a typical kernel sum, at most all 2,000.
- *Ours, rows planned*: as many rows as `hs.plan` expects to err least, from 5 % of the nodes that are assumed
  public (their number is declared); candidates are 1, 3, 10, … 1,000 and 2,000 rows.
- *Best number of rows, by oracle*: the one of these candidates with the smallest measured error; not a choice
  that anybody could make without looking at the data.
- *Ours, δ = 1e-6*: discrete Gaussian noise on all 2,000 rows. The paper has no such form.
- *Hashing alone* has no noise: what remains for large ε. *Answering 0* errs by the mean sum, and whatever
  errs more says nothing about single nodes.
"""


_READING: Final = """\
## What it says

Of the committed results (their repetitions and versions stand below the tables):

- **The paper's form is nearly all noise on these graphs.** Its 2,000 rows share ε, so that the mean over
  them has noise of deviation √(2R)/ε = 63/ε whatever the graph: a mean error of 5,000 at ε = 0.01, 51 at ε
  = 1 and 5 at ε = 10. The mean sums are 15 to 46, so up to ε = 1 answering 0 is nearer. Hashing alone errs
  by 0.3 to 1.5.
- **The number of rows decides.** Planned on 5 % public nodes it is 1 to 300 instead of 2,000, and the error
  is 7 to 35 times smaller at ε = 0.1, 4 to 9 times at ε = 1 and 1.4 to 3 times at ε = 10. It is the
  oracle's choice or within a tenth of its error, except on ego-Facebook, whose 200 public nodes suggest too
  few rows for small ε (1.6 times the oracle's error at ε = 0.03 and 0.1).
- **The default number of rows** needs no public nodes. It assumes that the answer of a row varies as it does
  between Slashdot and ego-Facebook, which it was chosen with; the other three graphs played no part. At ε = 1
  it errs 2 to 8 times less than the paper's form, and over all ε and graphs 0.9 to 2.2 times as much as the
  planned number: it publishes 2 to 13 times as many rows as the plan on Slashdot and Brightkite, and a third
  as many on ego-Facebook, where at ε = 10 it errs 13 % more than the paper's form. Planning with a public
  sample stays the better way.
- **δ = 1e-6 is worth more than all of that from ε = 1 on**: noise no longer grows with rows, and all 2,000
  of them err 13 to 15 times less than the paper's form at ε = 1.
- **Removing the fold and not rounding down gain nothing at this width**: the fold adds N/W, 0.04 to 0.8,
  and rounding down takes 0.5, both far below the noise, while the noisy count takes 2 % of ε. They matter
  for narrow tables. **Scattering** hash values before they are folded gains nothing either: minima of
  hashes are not in progression, as floors of projections are.
- **N̂.** The paper's estimate from the table has noise of deviation √(2WR)/ε = 20,000/ε (100 % means that
  it was below 1), which no mean kernel value f/N̂ survives on these graphs; the paid count errs by about
  70/ε. Sums do not need it.
- **Useful answers**, with at most half the error of answering 0, need ε = 1 with planned rows or with δ,
  and ε = 3 (Slashdot, ego-Facebook) or 10 in the paper's form.
- **Time.** Reading, counting and releasing take 3 to 5 processor seconds of one thread, most of them for
  the noise of 2·10⁸ cells; the paper has 25 s of 90 threads for Slashdot. A query takes 56 to 103 µs.
  Graphs of this size are also summed exactly in 29 to 99 µs for a query: a sketch is for those that are
  much larger, or private.
"""

_TIMES: Final = """\
## Table 4: seconds

Processor seconds of one thread, in one run: R = {rows}, W = {width}, released at ε = 1 with all rows.
*Sketch* is reading the edges, counting and drawing the noise. *Query* is one call for one node, *in a batch*
one call for all 2,000; *exact sum* is one of 2,000 exact sums by sparse products. The published times are
wall-clock times of 90 threads. An edge of an undirected graph counts once, self-loops not at all (SNAP counts
78,303 of them among Slashdot's 948,464).
"""


def write_page(output: Path) -> Path:
    """Draw the figure and write GRAPHS.md from the results in ``output``; returns the file."""
    parts = [_OPENING]
    errors, times = (output / "results" / f"{name}.json" for name in ("figure6", "table4"))
    if errors.is_file():
        subject = load_subject(errors)
        figures = output / "figures"
        figures.mkdir(exist_ok=True)
        # What was read off the committed results stands beside those alone.
        parts += _errors(subject, figures, [_READING] if output == Path(__file__).parent else [])
    if times.is_file():
        parts.append(_times(json.loads(times.read_text(encoding="utf-8"))))
    file = output / "GRAPHS.md"
    file.write_text(marked("\n".join(parts)), encoding="utf-8")
    return file


def _errors(subject: Subject, figures: Path, reading: list[str]) -> list[str]:
    ordered = {name: subject.curves[name] for name in graphs.GRAPHS if name in subject.curves}
    ordered |= subject.curves
    subject.curves = ordered
    titles = {name: _TITLES.get(name, name) for name in ordered}
    draw_subject(
        subject,
        LINES,
        figures / "figure6.png",
        y_label="mean error of the sum",
        titles={name: f"{titles[name]}, {curves.records:,} nodes" for name, curves in ordered.items()},
        limits=None if subject.settings.quick else (0.2, 8000.0),
        legend_rows=2,
        logarithmic=True,
    )
    parts = ["## Figure 6: mean error of the Jaccard sums\n\n![mean error against ε](figures/figure6.png)\n"]
    parts += [_METHODS, *reading, _gains(subject, titles)]
    for name, curves in ordered.items():
        parts.append(_table(subject, curves, titles[name]))
    versions = ", ".join(dict.fromkeys(curves.version for curves in ordered.values()))
    fewest, most = subject.repetitions
    number = f"{most}" if fewest == most else f"{fewest} to {most}"
    parts.append(
        f"{number} repetitions, {subject.seconds / 60.0:.0f} minutes of processor time, hushsum {versions}.\n"
    )
    return parts


def best_rows(curves: Curves) -> tuple[Floats, Floats, list[int]]:
    """The smallest mean error over numbers of rows at each ε, its standard error, and that number."""
    tried = [each for each in (*graphs.FEWER_ROWS, graphs.ROWS) if graphs.with_rows(each) in curves.values]
    means = np.array([curves.mean(graphs.with_rows(each)) for each in tried])
    errors = np.array([curves.stderr(graphs.with_rows(each)) for each in tried])
    places = means.argmin(axis=0)
    at = np.arange(means.shape[1])
    return means[places, at], errors[places, at], [tried[place] for place in places]


def _table(subject: Subject, curves: Curves, title: str) -> str:
    rows = []
    all_rows = graphs.with_rows(_all_rows(curves))
    for method, words in (
        (graphs.PAPER, "paper's form"),
        (all_rows, f"ours, {all_rows}"),
        (graphs.CHOSEN, "ours, rows by default"),
        (graphs.PLANNED, "ours, rows planned"),
        (graphs.PLANNED_POSITIVE, "the same, answers below 0 raised to 0"),
        (graphs.GAUSSIAN, "ours, all rows, δ = 1e-6"),
        (graphs.HASHING, "hashing alone, no noise"),
        (graphs.HASHING_LINEAR, "the same, hash values folded without scattering"),
    ):
        mean, error = curves.mean(method), curves.stderr(method)
        rows.append([words, *_numbers(mean, error, curves.repetitions(method))])
    mean, error, chosen = best_rows(curves)
    rows.insert(5, [BEST, *_numbers(mean, error, len(curves.chosen))])
    by_default, planned = (
        [_range([int(each.split(", ")[place]) for each in at]) for at in zip(*curves.chosen, strict=True)]
        for place in (0, 1)
    )
    rows.append(["rows by default", *by_default])
    rows.append(["rows planned", *planned])
    rows.append(["rows by oracle", *(f"{each}" for each in chosen)])
    for method, words in (
        (graphs.TABLE_COUNT, "error of N̂ from the table (algorithm 2)"),
        (graphs.PAID_COUNT, "error of N̂, paid and combined (ours)"),
    ):
        rows.append([words, *(f"{each:.1%}" if each < 10 else "> 1000%" for each in curves.mean(method))])
    zero = float(curves.mean(graphs.ZERO)[0])
    times = len(curves.chosen)
    return (
        f"**{title}**: {curves.records:,} nodes with {curves.features / curves.records:.1f} neighbours on "
        f"average; the mean sum is {zero:.1f}, {zero / curves.records:.2%} of N. "
        f"{times} repetition{'s' if times > 1 else ''}.\n\n"
        + markdown_table(["ε", *(f"{epsilon:g}" for epsilon in subject.epsilons)], rows)
        + "\n"
    )


def _all_rows(curves: Curves) -> int:
    """The rows of the tally: the largest number that was released."""
    tried = [each for each in (*graphs.FEWER_ROWS, graphs.ROWS) if graphs.with_rows(each) in curves.values]
    return max(tried)


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def _numbers(means: Floats, errors: Floats, repetitions: int) -> list[str]:
    """``5.3 ± 0.1``; one repetition has no standard error."""
    texts = []
    for mean, error in zip(means, errors, strict=True):
        digits = 0 if mean >= 100 else 1 if mean >= 10 else 2
        texts.append(f"{mean:,.{digits}f}" + (f" ± {error:,.{digits}f}" if repetitions > 1 else ""))
    return texts


def _gains(subject: Subject, titles: dict[str, str]) -> str:
    """By which factor each choice lowers the error of the paper's form."""
    epsilons = [epsilon for epsilon in (0.01, 0.1, 1.0, 10.0) if epsilon in subject.epsilons]
    places = [subject.epsilons.index(epsilon) for epsilon in epsilons]
    rows = []
    for name, curves in subject.curves.items():
        paper = curves.mean(graphs.PAPER)
        all_rows = curves.mean(graphs.with_rows(_all_rows(curves)))
        for before, after, words in (
            (paper, all_rows, "fold removed, no rounding down"),
            (all_rows, curves.mean(graphs.CHOSEN), "rows by default"),
            (all_rows, curves.mean(graphs.PLANNED), "rows planned on public nodes"),
            (paper, curves.mean(graphs.PLANNED), "**all of it, pure ε**"),
            (paper, curves.mean(graphs.GAUSSIAN), "all rows with δ = 1e-6"),
        ):
            ratio = before / after
            rows.append([f"{titles[name]}: {words}", *(f"{ratio[place]:.2f} ×" for place in places)])
    head = ["error before / after, at ε =", *(f"{epsilon:g}" for epsilon in epsilons)]
    return f"What our choices gain over the paper's form:\n\n{markdown_table(head, rows)}\n"


def _times(document: dict[str, Any]) -> str:
    rows = [[f"{name} (published)", nodes, edges, "–", "–", "–", "–", sketch, query, "–", "–"]
            for name, nodes, edges, sketch, query in PUBLISHED_TIMES]  # fmt: skip
    for name, each in document["graphs"].items():
        seconds = each["seconds"]
        edges = each["entries"] if each["directed"] else each["entries"] // 2
        sketch = seconds["read"] + seconds["count"] + seconds["release"]
        rows.append(
            [
                _TITLES.get(name, name),
                f"{each['nodes']:,}",
                f"{edges:,}",
                f"{each['entries'] / each['nodes']:.1f}",
                *(f"{seconds[part]:.2f} s" for part in ("read", "count", "release")),
                f"{sketch:.2f} s",
                *(f"{1e6 * seconds[part]:.0f} µs" for part in ("query", "batch", "exact")),
            ]
        )
    head = [
        "graph", "N", "edges", "mean degree", "read", "count", "release", "sketch", "query", "in a batch",
        "exact sum",
    ]  # fmt: skip
    about = _TIMES.format(rows=f"{document['rows']:,}", width=f"{document['width']:,}")
    return f"{about}\n{markdown_table(head, rows)}\n\nhushsum {document['version']}.\n"
