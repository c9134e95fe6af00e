"""The table, the targets and the pictures of the race, from its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy_methods import AT_THE_END, EPSILONS
from benchmarks.accuracy_pictures import draw_race, draw_scaling
from benchmarks.accuracy_targets import Target, targets

OURS = ("auto", "auto, undeclared", "grid", "landmarks", "fourier_features",
        "hermite")  # fmt: skip
_OPENING = """\
# The race

Mean absolute error of the mean kernel value f(q)/N at 500 queries from the data, over releases with fresh
noise. All methods of a table release the same kernel, Gaussian, but for hash rows, which stand in a block of
their own: their kernel is Euclidean with the same mean density, and errors compare in that sense alone. Sets
have the Jaccard kernel, which hash rows alone release.

- **Baselines by oracle.** Each baseline's parameters are the best of a grid, chosen on the very data at no
  cost in ε; the grid is extended while the best value is at its end, and the best value is then released
  anew, since the least of several noisy errors is too small. Ours (`auto`, `grid`, `landmarks`,
  `fourier_features`, `hermite`) get no such help: defaults, and the declared number of records. `auto,
  undeclared` has no declared number of records. Noise of ours is exact, in integers; that of LSQ-RFF and
  `kme` is computed in floating point.
- Where `auto` releases landmarks at every ε, its row is that of landmarks, which have none of their own
  there. Where both are measured, with the same settings, targets take the mean of the two for both.
- **Plans.** The constants behind the choices of `auto` were fitted on one half of the data sets: of those
  here the New York and San Francisco salaries, `earnings`, `skin` and `cod_rna`. The others are the testing
  half, and targets on plans are given for both.
- **δ = 1e-6** lets a method use pure noise too, where that is better. `kme` and `pfda` protect against one
  record *replaced*, with a public number of records; all others against one *present or absent*. LSQ-RFF is
  computed in floating point and is given the number of records for nothing.
- Releases of a cell: 200 of fewer than 5,000 records, else 120 in one column, 60 in two and 24 in more, of
  baselines that take more than 50 ms a tenth of that, at least 3; 2 to 6 public seeds of hash rows and
  features, 24 of few features, 16 of landmarks, or 48 with few records. The errors of one seed at all queries
  are as one draw, so cells with few seeds are uncertain: `seed_stderr` in the JSON.
- `auto` may count for 5 s on one core as planned, in place of 60 s, and files of hash rows have at most 8 MB
  in place of 64 MB, so that there is time for several seeds.
- Times are processor seconds on a busy machine; a build is counting and one release.
"""


_MADE_BY = """\
Made by `python -m benchmarks.accuracy --again`; all that was measured, with parameters, is in
`accuracy.json`.
"""
_SCALING = """\
## Many rows and many features

Forest data, 100,000 × 54, δ = 1e-6. `race_broad` has the Euclidean kernel of bandwidth 0.63, at which 2000
rows err about 0.0013, as the sketch did in the table to beat. *Own* is the error without noise; the last
columns are the file as released, and with rounded cells, at ε = 1. The noisy count has 2 % of the budget,
10 % for the broad kernel, since its error weighs with the density.
"""


def write_report(results: dict[str, Any], folder: Path, *, parts: int, missing: Sequence[str] = ()) -> Path:
    """Write ``accuracy.md`` and the pictures; ``parts`` is how many a complete run has, ``missing`` are the
    names of those that were not measured.
    """
    page = [
        _OPENING + _ends(results),
        _made_by(results, parts, missing),
        "## Targets\n",
        _target_table(targets(results)),
    ]
    page.append("\n![errors against ε](accuracy.png)\n")
    draw_race(results, folder / "accuracy.png")
    if results["scaling"]:
        draw_scaling(results, folder / "scaling.png")
        page.append("![errors against the number of rows or features](scaling.png)\n")
        page.append(_SCALING)
        page.append(_scaling_table(results["scaling"]))
    page.append("## Every method\n")
    for name, facts in results["data"].items():
        page.append(_data_table(results, name, facts))
    if results["builds"]:
        rows = [
            [each["case"], f"{each['wall']:.2f}", f"{each['processor']:.2f}"] for each in results["builds"]
        ]
        page.append("## Builds on two threads\n")
        page.append(_markdown(["what", "seconds", "processor seconds"], rows))
    file = folder / "accuracy.md"
    file.write_text("\n".join(page) + "\n", encoding="utf-8")
    return file


def _made_by(results: dict[str, Any], parts: int, missing: Sequence[str]) -> str:
    version, done = results["version"], results["parts"]
    spent = sum(part["seconds"] for part in done)
    left = "" if len(done) >= parts else f" **{parts - len(done)} of {parts} parts are not measured yet**"
    left += f": {', '.join(missing)}. Targets do not compare with them.\n" if missing else ""
    later = [part for part in done if "version" in part]
    one = "Every cell was" if not later else f"{len(done) - len(later)} parts were"
    return (
        f"{_MADE_BY}\n{one} measured by one version of the code: {version['number']}, commit\n"
        f"{version['commit']}, sources {version['digest']}, {version['day']}; {len(done)} parts,\n"
        f"{spent / 60:.0f} minutes together.{left}{_later_parts(later)}\n"
    )


def _later_parts(parts: Sequence[dict[str, Any]]) -> str:
    """Which parts were measured again, and by what."""
    names: dict[tuple[str, ...], list[str]] = {}
    for part in parts:
        version = part["version"]
        key = tuple(version[each] for each in ("number", "commit", "digest", "day"))
        names.setdefault(key, []).append(part["name"])
    return "".join(
        f"\n**Measured again** by {number}, commit {commit}, sources {digest}, {day}: {', '.join(each)}."
        for (number, commit, digest, day), each in names.items()
    )


def _ends(results: dict[str, Any]) -> str:
    """Which baselines were best at an end of their grid, beyond which they cannot go."""
    found = {(cell["method"], cell["data"]) for cell in results["cells"] if AT_THE_END in cell["note"]}
    if not found:
        return "- Every baseline's best value is inside its grid.\n"
    by_method: dict[str, list[str]] = {}
    for method, data in sorted(found):
        by_method.setdefault(method, []).append(data)
    words = "; ".join(f"{method}: {', '.join(names)}" for method, names in by_method.items())
    return (
        "- **At the end of its grid** is the best value of these, at some ε, where the method, memory or\n"
        f"  time allow no further one: {words}.\n"
    )


def _scaling_table(rows: Sequence[dict[str, Any]]) -> str:
    head = [
        "method",
        "size",
        "seeds",
        "own",
        *(f"ε {e:g}" for e in EPSILONS),
        "rounded, ε 1",
        "file",
        "rounded",
    ]
    order = {"race": 0, "race_broad": 1, "fourier_features": 2}
    return _markdown(
        head,
        [
            [
                row["method"],
                f"{row['size']:,} × {row['width']}",
                str(row["seeds"]),
                f"{row['own']:.2e}",
                *(f"{row[f'{e:g}']:.2e}" for e in EPSILONS),
                f"{row['rounded 1']:.2e}",
                _bytes(row["bytes 1"]),
                _bytes(row["rounded bytes 1"]),
            ]
            for row in sorted(rows, key=lambda row: (order[row["method"]], row["size"]))
        ],
    )


def _target_table(found: Sequence[Target]) -> str:
    rows = [[each.what, each.target, each.measured, "yes" if each.reached else "**no**"] for each in found]
    return _markdown(["what", "target", "measured", "reached"], rows)


def _data_table(results: dict[str, Any], name: str, facts: dict[str, Any]) -> str:
    cells = [cell for cell in results["cells"] if cell["data"] == name]
    shared = [cell for cell in cells if "own kernel" not in cell["note"]]
    hashed = [cell for cell in cells if "own kernel" in cell["note"]]
    exact = next((each for each in results["exact"] if each["data"] == name), None)
    head = ["method", *(f"ε {e:g}" for e in EPSILONS), *(f"ε {e:g}, δ" for e in EPSILONS)]
    head += ["relative, ε 1", "build, s", "query, µs", "file"]
    lines = [f"### {name}: {facts['records']:,} × {facts['columns']}", "", f"{facts['words']}; mean density "
             f"{facts['density']:.3g}.", ""]  # fmt: skip
    if not shared:
        lines.append(_hash_table(hashed, head))
        return "\n".join([*lines, ""])
    rows = [_row(shared, method) for method in _ordered(shared)]
    predicted = [cell for cell in shared if cell["method"] == "auto"]
    if predicted:
        rows.insert(1, _predictions(predicted))
    if exact is not None:
        rows.append(
            [
                "exact, scikit-learn",
                *["0"] * (2 * len(EPSILONS)),
                "0",
                f"{exact['fit']:.2g}",
                f"{exact['query'] * 1e6:.0f}",
                "–",
            ]
        )
    lines.append(_markdown(head, rows))
    if hashed:
        lines += ["", f"Hash rows, Euclidean kernel with bandwidth {facts['hash_bandwidth']:g}:", ""]
        lines.append(_hash_table(hashed, head))
    return "\n".join([*lines, ""])


def _hash_table(cells: Sequence[dict[str, Any]], head: Sequence[str]) -> str:
    rows = [_row(cells, method) for method in _ordered(cells)]
    rows.append(_predictions([cell for cell in cells if cell["method"] == "auto"]))
    return _markdown(head, rows)


def _ordered(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Ours first, then by the error under pure ε = 1, or with δ."""
    methods = {cell["method"] for cell in cells}

    def rank(method: str) -> tuple[int, float]:
        own = [cell["error"] for cell in cells if cell["method"] == method and cell["epsilon"] == 1.0]
        return (OURS.index(method) if method in OURS else len(OURS), min(own))

    return sorted(methods, key=rank)


def _row(cells: Sequence[dict[str, Any]], method: str) -> list[str]:
    own = {(c["epsilon"], c["delta"] > 0): c for c in cells if c["method"] == method}
    numbers = [f"{own[e, d]['error']:.1e}" if (e, d) in own else "–" for d in (False, True) for e in EPSILONS]
    last = own.get((1.0, False)) or own[1.0, True]
    return [
        f"**{method}**" if method == "auto" else method,
        *numbers,
        f"{last['relative']:.1%}",
        f"{last['build']:.2g}",
        f"{last['query'] * 1e6:.0f}",
        _bytes(last["size"]),
    ]


def _predictions(cells: Sequence[dict[str, Any]]) -> list[str]:
    own = {(c["epsilon"], c["delta"] > 0): c for c in cells}
    ratios = [f"× {own[e, d]['error'] / own[e, d]['predicted']:.2f}" for d in (False, True) for e in EPSILONS]
    return ["measured / predicted of auto", *ratios, "", "", "", ""]


def _bytes(size: int) -> str:
    return f"{size / 1e6:.3g} MB" if size >= 1e6 else f"{size / 1e3:.3g} kB"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
