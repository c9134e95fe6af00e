"""The words of the report."""
# The lines are those of the page.
# ruff: noqa: E501

from __future__ import annotations

OPENING = """\
# Non-parametric models as a service, run again

Dandekar, Basu and Bressan, *Evaluation of differentially private non-parametric machine learning as a service* (TRA3/19, 2019),
figures 1 to 6. Everything here but these words is made by

```
python -m papers.data            # the data, or stand-ins: see ../README.md
python -m papers.functional_perturbation.run all            # or figure_1 … figure_6
python -m papers.functional_perturbation.run all --quick    # small samples, into build/
python -m papers.functional_perturbation.run report         # pictures and verdicts again, from the JSON alone
```

Numbers are means over the repetitions that stand below each figure, each with its own sample and noise; bands are one standard deviation.

- **Data.** The paper's census extract is not public. Ages and incomes come from `adult` (1994), hourly earnings from `cps_earnings_2004`; the
  benchmarks are the paper's: 5000 draws of a normal law (mean 2, variance 1.3), the 287 women of `howell1` and `iris`.
- **Calibration.** The analytic Gaussian mechanism with the sensitivities of [functional perturbation](../../docs/explanation/functional-perturbation.md),
  not the paper's: √2 counts for the histogram instead of 2, the exact length for the Gaussian process, C/n and the intercept for the machine. Figure 6 has
  the paper's own calibration beside it, c(δ)/ε times its sensitivities, for which nothing is claimed here.
- **Output perturbation gets its best.** Gaussian answers are composed exactly (√T, not the paper's T); Laplace answers share ε. Its sensitivity is the
  largest change of an answer at any point of the box: one count for the histogram, k(0) for the density, and for the Gaussian process the supremum of
  |k(q, X)C⁻¹| over a lattice, with what may lie between its nodes added, which is below the length that functional perturbation needs.
- **Answers and points.** Figure 1 counts the answers that one budget pays for. Errors are always measured at 500 points at least (a divergence at one point
  is 0): with fewer answers than points, several users with so many answers each.
- One record is replaced, and the number of records is public; of the Gaussian process only the targets are private.
- **Parameters** (20 bins, bandwidths, σ) are fixed by the subject. C of the census machine is chosen for each number of records and each budget, among 3, 30, 300
  and 3000, on a third of the records that no figure fits or scores; figures 4 sample from the other two thirds. An error near
  0.24 is that of the more frequent class for everybody, which is the best that small budgets allow. C = 10 for iris is fixed.
- Estimates below one record are raised to one record before the KL divergence, which is taken over the test points.
"""
