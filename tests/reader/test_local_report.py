"""Reports that a web page makes on a person's device, collected by Python."""

from __future__ import annotations

import json
import math
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import binom, chisquare

import hushsum as hs
from hushsum.parties import ReportTerms, collect_reports
from tests.reader.node import node

_SCRIPT = Path(__file__).with_name("report.mjs")
KERNELS: dict[str, tuple[Any, Any]] = {
    "euclidean": (hs.EuclideanKernel(dim=2, bandwidth=3.0), (0, 20)),
    "jaccard": (hs.JaccardKernel(), None),
}


def asked(request: dict[str, Any]) -> Any:
    done = subprocess.run(
        [node(), str(_SCRIPT)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("name", "pooled"), [("euclidean", False), ("euclidean", True), ("jaccard", False)])
def test_python_collects_reports_whose_signs_have_the_right_law(name: str, pooled: bool) -> None:
    """Signs that belong to other cells would be wrong half of the time. False alarms once in 10⁶."""
    kernel, bounds = KERNELS[name]
    terms = ReportTerms.of(kernel, epsilon=2.0, rows=50, width=40, bounds=bounds)
    rng = np.random.default_rng(0)
    records: list[Any] = rng.uniform(-2, 22, (4000, 2)).round(3).tolist()
    if kernel.dim is None:
        records = [rng.integers(0, 50, 4).tolist() for _ in range(4000)]
    request = {"terms": b64encode(terms.to_bytes()).decode(), "records": records, "pooled": pooled}
    made = asked(request)["reports"]
    assert collect_reports(terms, [each.encode() for each in made]).reports == len(records)
    data = np.frombuffer(b"".join(b64decode(each) for each in made), np.uint8).reshape(-1, 18)
    rows = data[:, 8:12].copy().view("<u4")[:, 0].astype(np.int64)
    columns = data[:, 12:16].copy().view("<u4")[:, 0].astype(np.int64)
    cells = terms.basis.cells(terms.basis.prepare(records))[np.arange(len(records)), rows]
    true = np.array([int(each).bit_count() % 2 for each in cells & columns])
    flipped = 1.0 / (1.0 + math.exp(2.0))
    low = float(binom.ppf(5e-7, len(records), flipped))
    high = float(binom.isf(5e-7, len(records), flipped))
    assert low <= int((true != data[:, 16]).sum()) <= high
    assert chisquare(np.bincount(rows, minlength=50)).pvalue > 1e-6
    assert chisquare(np.bincount(columns, minlength=terms.order)).pvalue > 1e-6


def test_probabilities_are_enclosed() -> None:
    exponents = [(1, 1), (1, 10), (60, 1), (7, 3), (1, 10**12), (123456789, 10**7)]
    bounds = asked({"exponents": [[str(p), str(q)] for p, q in exponents], "bits": 128})
    mp.prec = 400
    for (p, q), (low, high) in zip(exponents, bounds, strict=True):
        exact = mp.exp(-mp.mpf(p) / q) * mp.mpf(2) ** 128
        assert int(low) <= exact <= int(high)
        assert int(high) - int(low) <= 4


@pytest.mark.parametrize(
    "record", [[1.0], [1.0, 2.0, 3.0], [None, 2.0], ["", 2.0], ["x", 2.0], [], "1,2", None]
)
def test_records_that_do_not_fit_are_refused(record: Any) -> None:
    terms = ReportTerms.of(KERNELS["euclidean"][0], epsilon=2.0, rows=5, width=8, bounds=(1, 20))
    assert "refused" in asked({"terms": b64encode(terms.to_bytes()).decode(), "records": [record]})


def test_damaged_terms_are_refused() -> None:
    terms = ReportTerms.of(KERNELS["euclidean"][0], epsilon=2.0, rows=5, width=8).to_bytes()
    for damaged in (
        terms + b" ",
        terms[:-1],
        terms.replace(b'"2"', b'"-2"'),
        terms.replace(b'"2"', b'"61"'),
        b"{}",
    ):
        assert "refused" in asked({"terms": b64encode(damaged).decode(), "records": [[1.0, 2.0]]})
