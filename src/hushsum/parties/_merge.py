"""Site-level noise: every site releases its own tally, and the public functions are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import ClaimError, IncompatibleTallies, UsageError
from hushsum.files import FileKind
from hushsum.operations import check_function_output, kind_of
from hushsum.privacy import PERSON, SITE_NOISE, Claim, IntegerNoise, Promise, Statement, Trust
from hushsum.records import refuse_repeated
from hushsum.releases import NoisyTable, PublicFacts, function_type, load_function, released_table
from hushsum.tables import Table
from hushsum.tally import differing_parameters

MOST_MERGED: Final = 1 << 14
"""Sites in one merged function: each is named in its file."""


def merge(*functions: Any, disjoint_units: bool = False) -> NoisyTable:
    """Add released functions of one basis: values add, and so do the variances of their noise.

    Works where sites trust nobody, not even with masked tables, and costs accuracy: the noise of n sites has
    √n times the deviation of one release. Where sites can run a protocol, secure aggregation
    (``hushsum federate``) needs the noise of one.

    Parameters
    ----------
    *functions : released functions of tallies
        Of one fingerprint, relation, unit and cap; at least two, each with noise of its own.
    disjoint_units : bool
        Declares that no record, or person, is at two of the sites. The claim is then the weakest of theirs;
        otherwise their promises add.

    Raises
    ------
    IncompatibleTallies
        if they do not count the same, are rounded differently, or a release would be counted twice: also
        one that is part of an earlier sum, rounded, or loaded from a file.
    ClaimError
        if their claims have no common form.

    Privacy
    -------
    Post-processing of what was released; nothing is spent. A unit that is at one site is protected by that
    site's claim. One that is at several moves all their tables, and sequential composition adds ε, δ and ρ.

    Examples
    --------
    >>> import hushsum as hs
    >>> def site(place):
    ...     tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=100)
    ...     return tally.add([[place]] * 5000).release(epsilon=1.0, rows=100)
    >>> f = hs.merge(site(0.0), site(0.5), disjoint_units=True)
    >>> f.claim.epsilon, f.claim.trust.parties
    (1.0, 2)
    >>> hs.merge(site(0.0), site(0.5)).claim.epsilon
    2.0
    """
    tables = [_table(each) for each in functions]
    if len(tables) < 2:
        raise UsageError("functions", "must be at least two", got=len(tables))
    first = tables[0]
    for other in tables[1:]:
        _check(first, other)
    parts = sorted(part for each in tables for part in each.releases)
    if len(set(parts)) < len(parts):
        raise IncompatibleTallies("a function must not be added to itself, nor to a sum that contains it")
    if len(parts) > MOST_MERGED:
        raise UsageError(
            "functions",
            f"must be at most {MOST_MERGED} sites together",
            got=len(parts),
            remedy="merge the tallies of neighbouring sites first",
        )
    alike = all(each.statement == first.statement for each in tables)
    return function_type(first.reading)(
        reading=first.reading,
        cells=narrowed(reduce(np.add, (each.table.astype(np.int64) for each in tables))),
        facts=PublicFacts(
            _claim(tables, disjoint_units=disjoint_units), statement=first.statement if alike else Statement()
        ),
        noise=IntegerNoise.sum_of([(1, each.noise) for each in tables]),
        noisy_count=sum(each.noisy_count for each in tables),
        count_noise=IntegerNoise.sum_of([(1, each.count_noise) for each in tables]),
        step=first.step,
        parts=tuple(parts),
    )


def _table(function: Any) -> NoisyTable:
    function = released_table(function)
    if not isinstance(function, NoisyTable):
        raise UsageError(
            "functions",
            "must be released tables, as Tally.release makes them",
            got=type(function).__name__,
            remedy="merge the tallies instead, and release once",
        )
    if function.stream_step is not None:
        raise UsageError(
            "functions",
            "must be releases of their own",
            got="a step of a release over time",
            remedy="merge the tallies of each step",
        )
    trust = function.claim.trust
    if trust is not None and trust.model != SITE_NOISE:
        raise UsageError(
            "functions",
            "must come from single sites",
            got=f"one made by {trust.model}",
            remedy="let all sites take part in it",
        )
    return function


def _check(first: NoisyTable, other: NoisyTable) -> None:
    if first.basis.fingerprint != other.basis.fingerprint or first.kernel != other.kernel:
        raise IncompatibleTallies(
            "functions that are merged must have the same fingerprint and kernel",
            got=f"some that differ in {differing_parameters(first.basis, other.basis) or 'kernel'}",
            remedy="count, and publish as many rows, with the same parameters at every site",
        )
    if first.step != other.step:
        raise IncompatibleTallies("functions that are merged must be rounded alike", got="different steps")
    own = (first.claim.unit, first.claim.records_per_unit, first.claim.relation)
    if own != (other.claim.unit, other.claim.records_per_unit, other.claim.relation):
        raise ClaimError(
            "functions that are merged must claim the same unit, cap and relation", got="different ones"
        )


def narrowed(cells: NDArray[np.int64]) -> Table:
    """The cells with 32 bits, if all fit."""
    narrow = np.iinfo(np.int32)
    fits = int(cells.min()) >= narrow.min and int(cells.max()) <= narrow.max
    return cells.astype(np.int32) if fits else cells


def _claim(tables: Sequence[NoisyTable], *, disjoint_units: bool) -> Claim:
    claims = [each.claim for each in tables]
    parties = sum(1 if each.trust is None else each.trust.parties for each in claims)
    unit = claims[0].unit
    assumed = dict.fromkeys(text for each in claims for text in each.assumptions)
    if disjoint_units:
        assumed[f"no {unit} is at more than one site"] = None
    elif unit == PERSON:
        assumed["the limit of a person's records holds at each site"] = None
    arithmetic = dict.fromkeys(each.arithmetic for each in claims)
    return replace(
        claims[0],
        promise=_promise([each.promise for each in claims], disjoint_units=disjoint_units),
        mechanism=reduce(add, (each.mechanism for each in claims)),
        arithmetic=" and ".join(arithmetic),
        secure=all(each.secure for each in claims),
        assumptions=tuple(assumed),
        trust=Trust(SITE_NOISE, parties),
    )


def _promise(promises: Sequence[Promise], *, disjoint_units: bool) -> Promise:
    """The largest of the promises, or their sum where one unit may be in all of the tables."""
    together_ = max if disjoint_units else sum
    rhos = [each.rho for each in promises if each.rho is not None]
    epsilons = [each.epsilon for each in promises if each.epsilon is not None]
    if rhos and epsilons:
        raise ClaimError("functions that are merged must all claim rho, or all epsilon", got="both")
    if rhos:
        return Promise.of(rho=together_(rhos))
    delta = together_(each.delta for each in promises)
    return Promise.of(epsilon=together_(epsilons), delta=delta or None)


@dataclass(frozen=True, slots=True)
class FunctionsMerged:
    """The file of merged functions, and what it holds."""

    file: str
    function: NoisyTable

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {"file": self.file, "claim": self.function.claim.in_numbers()}


def are_functions(paths: Sequence[str]) -> bool:
    """Whether the files are released functions, rather than tallies.

    Raises
    ------
    UsageError
        if some are and some are not.
    """
    released = {kind_of(Path(path)) is FileKind.RELEASED for path in paths}
    if len(released) > 1:
        raise UsageError(
            "tallies merge with tallies, and released functions with released functions", got="both"
        )
    return released == {True}


def merge_functions(paths: Sequence[str], output: str, *, disjoint_units: bool = False) -> FunctionsMerged:
    """Write the sum of released functions; see `hushsum.parties._merge.merge`."""
    refuse_repeated(paths)
    path = check_function_output(output, inputs=paths)
    function = merge(*(load_function(each) for each in paths), disjoint_units=disjoint_units)
    function.save(path)
    return FunctionsMerged(output, function)
