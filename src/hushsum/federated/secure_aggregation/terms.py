"""The public agreement of one secure aggregation: what is counted, what is promised, who takes part."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from hushsum.bases.base import Basis, Reading
from hushsum.bases.registry import reading_as_json, reading_from_json
from hushsum.errors import FileRefused, HushsumError, Parameter, UsageError
from hushsum.files.encoding import stored_rational
from hushsum.kernels.base import Kernel
from hushsum.privacy.calibration import Calibration
from hushsum.privacy.claim import Claim, Promise, checked_unit, unit_in_words
from hushsum.privacy.integer_noise import LAPLACE, SKELLAM, IntegerNoise
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.noise_shares import noise_shares
from hushsum.privacy.release_request import AUTO, ReleaseRequest
from hushsum.privacy.trust_model import SECURE_AGGREGATION, Trust
from hushsum.tally.refused_changes import differing_parameters
from hushsum.tally.release import ReleaseOptions, check_release, claimed_unit
from hushsum.tally.tally import Tally
from hushsum.transport.peer_identity import fingerprint_of
from hushsum.transport.serialization import check_spelling, pack, unpack

MOST_SITES: Final = 1 << 10
MOST_TERMS: Final = 1 << 22
_UNDECLARED_RECORDS: Final = 1 << 30
_REACH: Final = 64
"""Deviations of the noise for which the ring has room."""


@dataclass(frozen=True)
class AggregationTerms:
    """What all sites and the server know before the first message, and never change.

    Parameters
    ----------
    run : str
        Names the run; a key pair of a site serves one run.
    reading : Reading
        What each site counts, cut to the published rows, and how the sum is read.
    request : ReleaseRequest
        Promise, relation, unit and count share of the released sum.
    per_unit : int
        How many records, or lists of edges, one unit may be in.
    sites : tuple of str
        The fingerprints of the sites' keys, sorted.
    dropouts : int
        How many sites may leave before the sum is opened; nothing is opened if more do.
    colluding : int
        How many sites may use what they know, alone or together with the server. A site knows its own share
        of noise, so with 0 the claim does not hold against the sites themselves.

    Privacy
    -------
    At least ``n − dropouts`` tables are in a sum that is opened, ``n − dropouts − colluding`` of them from
    honest sites, whose shares of noise keep the promise alone (`hushsum.privacy.noise_shares`). A
    unit that is added to, removed from or replaced in the data of one site moves the sum as it moves that
    site's table. A person with records at several sites is in as many tables, and budgets add: the claim
    states that it assumes one.
    """

    run: str
    reading: Reading
    request: ReleaseRequest
    per_unit: int
    sites: tuple[str, ...]
    dropouts: int
    colluding: int

    def __post_init__(self) -> None:
        n, d, t = len(self.sites), self.dropouts, self.colluding
        if not 2 <= n <= MOST_SITES or len(set(self.sites)) != n or list(self.sites) != sorted(self.sites):
            raise UsageError(
                parameter="sites",
                rule=f"must be from 2 to {MOST_SITES} different fingerprints",
                got=f"{n}",
                remedy="name each site once",
            )
        if d < 0 or t < 0 or t + 2 * d >= n:
            raise UsageError(
                parameter="dropouts",
                rule=(
                    "and ",
                    Parameter("colluding"),
                    f" must satisfy colluding + 2·dropouts < {n}, the sites",
                ),
                got=f"dropouts {d} and colluding {t}",
                remedy="allow fewer, or have more sites",
            )
        checked_unit(self.unit, self.reading.basis.units)
        if self.request.checked_mechanism is not None:
            raise UsageError(
                parameter="mechanism",
                rule="must be left out of a secure aggregation",
                got=f"{self.request.mechanism!r}",
                remedy="leave it out",
            )
        self.request.check_delta()
        check_release(self.reading.basis, self.promise, self._options)
        _ = self.shares

    @classmethod
    def of(
        cls,
        tally: Tally,
        request: ReleaseRequest,
        sites: Sequence[str],
        *,
        dropouts: int = 0,
        colluding: int = 1,
        run: str | None = None,
    ) -> AggregationTerms:
        """Terms for tallies of the same fingerprint as this one, of which only the public part is read.

        ``rows`` of the request are cut off the basis; ``"auto"`` keeps all, since sites cannot look at a
        noisy count first.
        """
        basis = tally.basis
        rows = basis.shape[0] if request.rows == AUTO else request.rows
        if type(rows) is not int or not 1 <= rows <= basis.shape[0]:
            raise UsageError(
                parameter="rows",
                rule=f"must be from 1 to the tally's {basis.shape[0]}",
                got=f"{rows!r:.20}",
                remedy="leave it out for all",
            )
        unit, per_unit = claimed_unit(tally, request.unit, request.relation)
        return cls(
            run=run or secrets.token_hex(16),
            reading=basis.prefix(rows).reading(_kernel(tally)),
            request=replace(
                request,
                unit=unit,
                rows=rows,
                budget=None,
                idempotency_key=None,
                insecure_noise_seed=None,
            ),
            per_unit=per_unit,
            sites=tuple(sorted(fingerprint_of(each) for each in sites)),
            dropouts=dropouts,
            colluding=colluding,
        )

    @property
    def unit(self) -> str:
        """Whom the claim protects."""
        assert self.request.unit is not None
        return self.request.unit

    @property
    def promise(self) -> Promise:
        """ε, δ and ρ of the sum."""
        return self.request.promise

    @property
    def basis(self) -> Basis:
        """What is counted: the published rows."""
        return self.reading.basis

    @property
    def cells(self) -> int:
        """The cells of the published table."""
        return math.prod(self.basis.shape)

    @property
    def least(self) -> int:
        """The fewest contributions that are opened, and the threshold of the shares of keys.

        Since ``2·(n − dropouts) > n + colluding``, two different lists of survivors cannot both be signed by
        so many sites, even if those that collude sign both.
        """
        return len(self.sites) - self.dropouts

    @cached_property
    def _options(self) -> ReleaseOptions:
        # Shares of noise are of laws that add up, which the Gamma-radius law does not.
        mechanism = LAPLACE if self.promise.pure else None
        return ReleaseOptions.of(
            replace(self.request, mechanism=mechanism),
            self.reading.basis,
            self.unit,
            self.per_unit,
            1,
            (f"no {self.unit} is at more than one site", *self.trust.assumptions()),
        )

    @property
    def trust(self) -> Trust:
        """How many sites there are, may leave, and may use what they know."""
        return Trust(SECURE_AGGREGATION, len(self.sites), self.dropouts, self.colluding)

    @property
    def claim(self) -> Claim:
        """What the sum promises to the units of every site; each site's ledger is debited with it."""
        claim = replace(self._options.claim(self.promise), trust=self.trust)
        drawn = self.shares.table.mechanism
        return replace(claim, mechanism=Mechanism.of(SKELLAM)) if drawn == SKELLAM else claim

    @cached_property
    def shares(self) -> Calibration:
        """The noise that each site adds to its cells, and to its number of records."""
        options = self._options
        return noise_shares(
            self.promise,
            self.basis.unit_change(options.unit, options.per_unit, options.relation),
            cells=self.cells,
            count_share=options.count_share,
            honest=self.trust.honest,
        )

    def noises(self, contributions: int) -> Calibration:
        """The noise of a sum of so many contributions."""
        table, count = (IntegerNoise.sum_of([(contributions, share)]) for share in self.shares)
        return Calibration(table, count)

    @cached_property
    def ring_bits(self) -> int:
        """32 where the sum surely fits, else 64: of ``population`` records, or of 2³⁰ if none is declared.

        Wrapping around is a function of the noisy sum: it would cost accuracy, and never privacy.
        """
        records = max(self.request.population or _UNDECLARED_RECORDS, 1) * self.per_unit
        largest = max(self.basis.sensitivity(self._options.relation).largest, 1)
        noise = max(each.variance for each in self.noises(len(self.sites)))
        return 32 if records * largest + _REACH * math.sqrt(noise) < 2**31 else 64

    @cached_property
    def digest(self) -> bytes:
        """Names these terms in every signature and key."""
        return hashlib.sha256(b"hushsum aggregation terms " + self.to_bytes()).digest()

    def check_tally(self, tally: Tally) -> None:
        """Refuse a tally that does not count what the terms say.

        Raises
        ------
        UsageError
            for another fingerprint, shape, unit or cap.
        """
        rows = self.basis.shape[0]
        counted = tally.basis.prefix(rows) if tally.basis.shape[0] >= rows else tally.basis
        if counted.fingerprint != self.basis.fingerprint:
            raise UsageError(
                rule="the tally must have the fingerprint of the terms",
                got=f"one that differs in {differing_parameters(self.basis, counted)}",
                remedy="count with the same",
            )
        if claimed_unit(tally, self.unit, self.request.relation) != (self.unit, self.per_unit):
            raise UsageError(
                rule=f"the tally must count the unit of the terms: {unit_in_words(self.unit, self.per_unit)}",
                got="another cap",
                remedy=("count with the same ", Parameter("max_per_unit")),
            )

    def to_bytes(self) -> bytes:
        """The one spelling of these terms."""
        return self._spelled

    @cached_property
    def _spelled(self) -> bytes:
        request = self.request
        promise = self.promise
        values = {
            "run": self.run,
            **reading_as_json(self.reading),
            "epsilon": None if promise.epsilon is None else str(promise.epsilon),
            "delta": str(promise.delta),
            "rho": None if promise.rho is None else str(promise.rho),
            "relation": str(self._options.relation),
            "unit": self.unit,
            "per_unit": self.per_unit,
            "count_share": str(self._options.count_share),
            "population": request.population,
            "allow_large_delta": bool(request.allow_large_delta),
            "sites": list(self.sites),
            "dropouts": self.dropouts,
            "colluding": self.colluding,
        }
        return pack("aggregation terms", values, {})

    @classmethod
    def from_bytes(cls, data: bytes) -> AggregationTerms:
        """The terms back.

        Raises
        ------
        FileRefused
            if these bytes are none.
        """
        _, values, _ = unpack(data, "aggregation terms", most=MOST_TERMS)
        try:
            terms = cls._read(values)
            check_spelling(terms, data)
            return terms
        except FileRefused:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, HushsumError):
            raise FileRefused(
                rule="these terms of an aggregation are damaged or of a later version"
            ) from None

    @classmethod
    def _read(cls, values: dict[str, Any]) -> AggregationTerms:
        whole = ("per_unit", "dropouts", "colluding")
        if any(type(values[name]) is not int or not 0 <= values[name] < 1 << 32 for name in whole):
            raise ValueError("numbers")
        run, population = values["run"], values["population"]
        if not isinstance(run, str) or not 1 <= len(run) <= 64 or not run.isalnum():
            raise ValueError("run")
        if population is not None and (type(population) is not int or not 1 <= population <= 1 << 60):
            raise ValueError("population")
        reading = reading_from_json(values)
        return cls(
            run=run,
            reading=reading,
            request=ReleaseRequest(
                epsilon=_rational(values["epsilon"]),
                delta=_rational(values["delta"]) or None,
                rho=_rational(values["rho"]),
                relation=values["relation"],
                unit=values["unit"],
                rows=reading.basis.shape[0],
                count_share=stored_rational(values["count_share"]),
                population=population,
                allow_large_delta=values["allow_large_delta"] is True,
            ),
            per_unit=values["per_unit"],
            sites=tuple(fingerprint_of(each) for each in values["sites"]),
            dropouts=values["dropouts"],
            colluding=values["colluding"],
        )


def _rational(text: object) -> Fraction | None:
    return None if text is None else stored_rational(text)


def _kernel(tally: Tally) -> Kernel | None:
    return None if tally.basis.counted_kernel() is not None else tally.kernel
