"""The data sets of the experiments, and how each is cut into public, private and test records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from papers.data import dataset_file

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

PUBLIC_SHARE = 0.05
TEST_SHARE = 0.20

CLASSIFICATION = ("htru2", "occupancy", "cod_rna")
REGRESSION = ("airfoil", "naval_propulsion", "gas_drift_8batches", "protein_casp")
ANOMALIES = ("kdd_http", "shuttle", "mammography")

_TARGET = {"gas_drift_8batches": "concentration"}
# Time stamps, file names and second targets, which no model may see.
_LEFT_OUT = {
    "occupancy": ("hour", "date", "split"),
    "naval_propulsion": ("target_compressor_decay",),
    "gas_drift_8batches": ("batch", "target"),
}


@dataclass(frozen=True, slots=True)
class Dataset:
    """Records with one label each.

    ``X`` has shape (n_records, n_features), ``y`` shape (n_records,): a class, 1 for an anomaly, or a number
    to predict.
    """

    name: str
    X: Floats
    y: Floats

    @property
    def labels(self) -> Labels:
        """The labels as integers."""
        return self.y.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Split:
    """Positions of the records that are public, private and held out for the test; no record is in two."""

    public: NDArray[np.int64]
    private: NDArray[np.int64]
    test: NDArray[np.int64]


def load_dataset(name: str) -> Dataset:
    """Read one data set."""
    import pyarrow.parquet as pq

    table = pq.read_table(dataset_file(name))
    target = _TARGET.get(name, "target")
    features = [c for c in table.column_names if c != target and c not in _LEFT_OUT.get(name, ())]
    columns = [table[c].to_numpy().astype(np.float64) for c in features]
    return Dataset(name, np.column_stack(columns), table[target].to_numpy().astype(np.float64))


def split_records(number: int, repetition: int) -> Split:
    """Cut ``number`` records at random: 5 % public, 20 % test, the rest private; fixed by the repetition."""
    order = np.random.default_rng((2021, repetition)).permutation(number)
    public = round(PUBLIC_SHARE * number)
    test = round(TEST_SHARE * number)
    return Split(order[:public], order[public + test :], order[public : public + test])
