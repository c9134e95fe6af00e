"""MST and AIM of other libraries on the encoded records of ``synthetic_tables.py --export FOLDER``.

``synthetic_tables_peers.py FOLDER SET LIBRARY METHOD EPSILON SEED [MODEL_MEGABYTES [ROUNDS]]`` runs in an
environment with one of them: ``dpmm`` 0.1.9 from PyPI (Python 3.10 or 3.11), or ``dpsynth`` from its
repository with ``mbi`` 2.0 from PyPI and JAX. This library is not imported.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

DELTA = 1e-6


def zcdp(epsilon: float, delta: float) -> float:
    """The largest ρ that gives (ε, δ), by the conversion of Canonne, Kamath and Steinke (2020)."""
    low, high = 0.0, 1.0
    order = np.linspace(1.001, 200.0, 200_000)
    for _ in range(60):
        rho = (low + high) / 2.0
        with np.errstate(over="ignore"):
            reached = np.exp((order - 1) * (order * rho - epsilon) + order * np.log1p(-1 / order)) / (
                order - 1
            )
        low, high = (rho, high) if reached.min() <= delta else (low, rho)
    return low


def dpmm(data: Any, method: str, epsilon: float, seed: int) -> tuple[Any, str]:
    """MST or AIM of dpmm, with its defaults."""
    import pandas as pd
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    names = [str(each) for each in data["names"]]
    frame = pd.DataFrame(data["train"], columns=names)
    domain = {name: int(size) for name, size in zip(names, data["sizes"], strict=True)}
    kind = {"aim": AIMGM, "mst": MSTGM}[method]
    model = kind(epsilon=epsilon, delta=DELTA, domain=domain, random_state=np.random.RandomState(seed))
    model.fit(frame)
    return model.generate(n_records=len(frame))[names].to_numpy(), "dpmm 0.1.9, its defaults"


def many_marginals(potentials: Any, queries: Any, total: float = 1.0) -> Any:
    """Marginals of a model by NumPy, which equal those of ``mbi`` to single precision."""
    import mbi

    domain = potentials.domain
    place = {name: i for i, name in enumerate(domain.attributes)}
    factors: list[Any] = []
    for clique in potentials.cliques:
        logs = np.asarray(potentials[clique].values, np.float64)
        factors += [np.exp(logs - logs.max()), [place[each] for each in potentials[clique].domain.attributes]]
    covered = {each for members in factors[1::2] for each in members}
    for name, i in place.items():
        if i not in covered:
            factors += [np.ones(domain.size((name,))), [i]]
    found = {}
    for query in queries:
        values = np.einsum(*factors, [place[each] for each in query], optimize="greedy")
        found[query] = mbi.Factor(domain.project(query), np.asarray(values * (float(total) / values.sum())))
    return mbi.CliqueVector(domain, list(queries), found)


def dpsynth(
    data: Any, method: str, epsilon: float, seed: int, megabytes: float, rounds: int
) -> tuple[Any, str]:
    """MST or AIM of dpsynth for all pairs of columns, with fewer rounds and steps than its defaults."""
    import mbi
    from dpsynth.discrete_mechanisms import aim, discrete, mst

    # Compiling the marginals of all candidates in every round took most of the time.
    mbi.marginal_oracles.bulk_variable_elimination = many_marginals
    names = [str(each) for each in data["names"]]
    domain = mbi.Domain(names, [int(each) for each in data["sizes"]])
    records = mbi.Dataset({name: data["train"][:, i] for i, name in enumerate(names)}, domain)
    if method == "aim":
        pairs = list(itertools.combinations(names, 2))
        inner = aim.AIMConfig(workload=pairs, max_rounds=rounds, max_model_size=megabytes, pgm_iters=200)
        settings = (
            f"dpsynth, workload all pairs, {rounds} rounds at most, model of {megabytes:g} MB, 200 steps"
        )
    else:
        inner, settings = mst.MSTConfig(pgm_iters=2000), "dpsynth, 2,000 steps"
    configured = discrete.DiscreteConfig(inner, compress_columns=True).configure(
        zcdp_rho=zcdp(epsilon, DELTA)
    )
    made = configured(np.random.default_rng(seed), records).synthetic_data
    return np.column_stack([np.asarray(made.data[name]) for name in names]), settings


def main() -> None:
    """Run one method on one set, and write its table beside the records."""
    folder, name, library, method, epsilon, number = Path(sys.argv[1]), *sys.argv[2:7]
    data = np.load(folder / f"{name}.npz")
    start = time.process_time()
    if library == "dpmm":
        codes, settings = dpmm(data, method, float(epsilon), int(number))
    else:
        megabytes = float(sys.argv[7]) if len(sys.argv) > 7 else 2.0
        rounds = int(sys.argv[8]) if len(sys.argv) > 8 else 20
        codes, settings = dpsynth(data, method, float(epsilon), int(number), megabytes, rounds)
    seconds = time.process_time() - start
    shown = f"{settings}; {seconds:.0f} s of processor time"
    np.savez(
        folder / f"{name}--{method.upper()} ({library})--{epsilon}--{number}.npz", codes=codes, settings=shown
    )


if __name__ == "__main__":
    main()
