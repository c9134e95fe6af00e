"""What the RACE paper proves about the error of hash rows, and the number of rows that follows from it.

Letters as in Coleman and Shrivastava (CCS 2021): R rows, privacy ε, failure probability δ (not the δ of a
claim), f̃ = Σ √k(x, q). The sum f̃ is private; from a release use ``f̃² ≤ N̂·f̂``, with k + (1 − k)/W for k
when hash values are folded.
"""

from __future__ import annotations

import math

from hushsum.errors import UsageError


def groups_for(failure: float) -> int:
    """Groups k = ⌈8 ln(1/δ)⌉ of the median of means (Lemma 3.3).

    >>> groups_for(0.05)
    24
    """
    if not 0.0 < failure < 1.0:
        raise UsageError(
            parameter="failure", rule="must be between 0 and 1", got=f"{failure}", remedy="try 0.05"
        )
    return max(1, math.ceil(8.0 * math.log(1.0 / failure)))


def median_of_means_bound(row_variance: float, rows: int, failure: float) -> float:
    """Lemma 3.3: with probability 1 − δ the median of means is within √(32·σ²·ln(1/δ)/R) of the mean; R ≥ 8
    ln(1/δ).

    >>> round(median_of_means_bound(row_variance=100.0, rows=1000, failure=0.05), 3)
    3.096
    """
    if rows < groups_for(failure):
        raise UsageError(
            parameter="rows",
            rule=f"must be at least 8·ln(1/failure) = {groups_for(failure)} for this bound",
            got=f"{rows}",
            remedy="use more rows or a larger failure probability",
        )
    return math.sqrt(32.0 * row_variance * math.log(1.0 / failure) / rows)


def theorem_3_4(root_sum: float, rows: int, epsilon: float, failure: float) -> float:
    """Theorem 3.4: |f̂ − f| ≤ √(f̃²/R + 2R/ε²)·√(32 ln(1/δ)) for the median of means under Laplace noise of
    scale R/ε.

    >>> round(theorem_3_4(root_sum=1000.0, rows=500, epsilon=1.0, failure=0.05), 1)
    536.3
    """
    return median_of_means_bound(root_sum**2 + 2.0 * (rows / epsilon) ** 2, rows, failure)


def corollary_3_5_rows(root_sum: float, epsilon: float) -> int:
    """Corollary 3.5: the number of rows R = ⌈f̃·ε/√2⌉ that minimises Theorem 3.4.

    >>> corollary_3_5_rows(root_sum=1000.0, epsilon=1.0)
    708
    """
    return max(1, math.ceil(root_sum * epsilon / math.sqrt(2.0)))


def corollary_3_5(root_sum: float, epsilon: float, failure: float) -> float:
    """Corollary 3.5: with that many rows, |f̂ − f| ≤ 16·√(f̃·ln(1/δ)/ε).

    >>> round(corollary_3_5(root_sum=1000.0, epsilon=1.0, failure=0.05), 1)
    875.7
    """
    groups_for(failure)
    return 16.0 * math.sqrt(root_sum / epsilon * math.log(1.0 / failure))


TYPICAL_RELATIVE_VARIANCE = 3e-3
"""Variance of one row's answer over N². Measured at queries from the data, with the paper's bandwidths:
0.03 to 0.05 for salaries, 0.004 for skin tones, 0.002 to 0.008 for RNA, scaled forest and word vectors,
0.0001 for raw forest data. The optimum is flat: a factor of ten in this number costs a third of the error.
"""


def rows_for_laplace(records: float, epsilon: float, capacity: int) -> int:
    """The rows a pure-ε release should publish, without looking at anything private but a paid count.

    The error √(v·N²/R + 2R/ε²) is smallest at R = N·ε·√(v/2), with v the typical relative variance of a row.

    >>> rows_for_laplace(records=245_000, epsilon=0.1, capacity=2000)
    949
    """
    best = records * epsilon * math.sqrt(TYPICAL_RELATIVE_VARIANCE / 2.0)
    return max(1, min(capacity, math.ceil(best)))
