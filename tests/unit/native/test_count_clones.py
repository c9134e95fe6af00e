"""Every clone of the loops gives the same bits: a record's cells may not depend on the processor."""

import pytest

from tests.unit.native.clones import CLONES, digest_of

PROGRAM = """
import hashlib
import numpy as np
from hushsum import _native
from tests.oracles.hashing import Codes, Minima, Projections, Structured, tally, uniform

digest = hashlib.sha256()
rng = np.random.default_rng(0)
for count, dim, rows, power, signs in [
    (1, 3, 40, 1, False), (29, 55, 100, 1, False), (47, 7, 33, 4, False), (31, 9, 70, 40, True)
]:
    native = Projections.draw(1, rows, power, dim, width=1000, signs=signs).native()
    records = uniform(rng, count, dim)
    records[0] *= 1e38
    table = np.zeros((rows, 1000), np.int64)
    native.count(records, table, 1, 2)
    for array in (native.cells(records, rows), table, *native.read(records, table, 1, 1),
                  *native.read(records, table, 7, 1)):
        digest.update(array.tobytes())
for width in (1000, 60_000):  # counted in narrow rows, and row by row
    native = Projections.draw(5, rows=70, power=1, dim=3, width=width).native()
    records = uniform(rng, 9001, 3) * 8
    table = np.zeros((70, width), np.int64)
    native.count(records, table, 1, 2)
    assert (table == tally(native.cells(records, 70), width)).all()
    digest.update(table.tobytes())
structured = Structured.draw(2, rows=70, power=2, dim=100, width=1000, size=128, block_rows=32)
digest.update(structured.native().cells(uniform(rng, 21, 100), 70).tobytes())
minima = Minima.draw(3, rows=70, power=2, width=1000)
digest.update(minima.native().cells(rng.integers(0, 2**40, 60), np.array([0, 0, 7, 60]), 70).tobytes())
codes = Codes.draw(4, rows=70, power=5, dim=9, width=1000)
digest.update(codes.native().cells(rng.integers(0, 9, (25, 9), dtype=np.int32), 70).tobytes())
print(_native.clone(), digest.hexdigest())
"""

# What every machine, compiler and build must print: a change here breaks the tallies of earlier versions.
DIGEST = "6f00773c86d569f6542e3761d9528c3b3670bcb00b991deac59aec00c5da76e5"


@pytest.mark.parametrize("clone", CLONES)
def test_clones_agree(clone: str) -> None:
    assert digest_of(clone, PROGRAM) == DIGEST
