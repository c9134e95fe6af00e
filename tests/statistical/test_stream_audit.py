"""Whole streams: a copy with a fifth less noise, and one that forgets what a unit can do, are caught.

Fixed seeds. A sound stream is accused with probability 1e-8, and the copy is missed with less than 1e-4.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hushsum.auditing import audit_separation
from hushsum.auditing._statistics import separation_power
from hushsum.privacy import IntegerNoise
from hushsum.streams import PreparedStream
from hushsum.streams._audit_cases import FIRST, TWICE, stream_pair

RELEASES = 4000
FEWER = 400
LESS = 0.8


def less_noise(prepared: PreparedStream) -> PreparedStream:
    """A fifth less in every output."""
    noise = prepared.terms.noise
    table, count = (
        IntegerNoise(each.mechanism, each.parameter * 16 / 25) for each in (noise.table, noise.count)
    )
    return replace(prepared, terms=replace(prepared.terms, noise=replace(noise, table=table, count=count)))


@pytest.mark.slow
def test_a_fifth_less_noise_is_caught() -> None:
    pair, copy = (
        stream_pair(((), FIRST), "add/remove", change) for change in (lambda each: each, less_noise)
    )
    assert separation_power(pair.mu, pair.chances(LESS), RELEASES, pair.tail) > 0.9999
    assert audit_separation("stream", pair, releases=RELEASES, seed=1).holds
    assert not audit_separation("copy", copy, releases=RELEASES, seed=2).holds


def test_noise_for_one_record_of_a_person_with_two_is_caught() -> None:
    def for_one_record(prepared: PreparedStream) -> PreparedStream:
        noise = prepared.terms.noise
        table, count = (
            IntegerNoise(each.mechanism, each.parameter / 4) for each in (noise.table, noise.count)
        )
        return replace(
            prepared, terms=replace(prepared.terms, noise=replace(noise, table=table, count=count))
        )

    pair, copy = (
        stream_pair(((), TWICE), "add/remove", change, max_per_unit=2)
        for change in (lambda each: each, for_one_record)
    )
    assert separation_power(pair.mu, pair.chances(0.5), FEWER, pair.tail) > 0.9999
    assert audit_separation("stream", pair, releases=FEWER, seed=3).holds
    assert not audit_separation("copy", copy, releases=FEWER, seed=4).holds
