"""A source serves one release in one process and shows nothing."""

from __future__ import annotations

import copy
import os
import pickle
from fractions import Fraction

import numpy as np
import pytest

from hushsum.errors import SecretRefused, UsageError
from hushsum.privacy.noise import NoiseSource, NoiseStream, discrete_gaussian, discrete_laplace

pytestmark = pytest.mark.fresh_noise

SCALE = Fraction(1000)


def test_fresh_sources_are_secure_and_differ() -> None:
    first, second = NoiseSource.fresh(), NoiseSource.fresh()
    assert first.secure
    # 64 draws of scale 1000 agree by chance with probability below 10^-200.
    assert not np.array_equal(discrete_laplace(64, SCALE, first), discrete_laplace(64, SCALE, second))


def test_seeded_sources_repeat_and_are_marked() -> None:
    assert not NoiseSource.insecure(5).secure
    first, second, other = (discrete_laplace(64, SCALE, NoiseSource.insecure(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_draws_of_one_release_are_independent_streams() -> None:
    with NoiseSource.insecure(5) as source:
        table, count = discrete_laplace(4096, SCALE, source), discrete_laplace(4096, SCALE, source)
    assert not np.array_equal(table, count)
    # The correlation of 4096 independent pairs has standard deviation 1/64; seven of them: below 10^-11.
    assert abs(np.corrcoef(table, count)[0, 1]) < 7 / 64


def test_second_release_is_refused() -> None:
    source = NoiseSource.fresh()
    with source:
        discrete_laplace(1, SCALE, source)
    with pytest.raises(SecretRefused, match="one release"):
        discrete_laplace(1, SCALE, source)
    with pytest.raises(SecretRefused, match="one release"), source:
        pass


def test_source_drawn_from_before_is_refused() -> None:
    source = NoiseSource.fresh()
    discrete_gaussian(1, Fraction(4), source)
    with pytest.raises(SecretRefused, match="already used"), source:
        pass


def test_nested_release_is_refused() -> None:
    with NoiseSource.fresh() as source, pytest.raises(SecretRefused, match="already used"), source:
        pass


def test_key_is_wiped_when_the_release_fails() -> None:
    source = NoiseSource.fresh()
    with pytest.raises(KeyError), source:
        raise KeyError
    with pytest.raises(SecretRefused, match="closed"):
        source.stream()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_process_is_refused() -> None:
    source = NoiseSource.fresh()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            discrete_laplace(1, SCALE, source)
        except SecretRefused as refused:
            status = 0 if "another process" in str(refused) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert discrete_laplace(1, SCALE, source).shape == (1,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_native_key_is_bound_to_its_process() -> None:
    stream = NoiseSource.fresh().stream()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            stream.key.keystream(0, 0, 0, 0, 1)
        except RuntimeError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_is_refused(protocol: int) -> None:
    source = NoiseSource.fresh()
    with pytest.raises(SecretRefused, match="pickled"):
        pickle.dumps(source, protocol)
    with pytest.raises(SecretRefused, match="pickled"):
        pickle.dumps(source.stream(), protocol)
    with pytest.raises(TypeError):
        pickle.dumps(source.stream().key, protocol)


def test_copies_are_refused() -> None:
    source = NoiseSource.fresh()
    for copier in (copy.copy, copy.deepcopy):
        with pytest.raises(SecretRefused, match="copied"):
            copier(source)
        with pytest.raises(SecretRefused, match="copied"):
            copier(source.stream())


def test_repr_shows_nothing() -> None:
    assert repr(NoiseSource.fresh()) == "NoiseSource(secure=True)"
    assert repr(NoiseSource.insecure(12345)) == "NoiseSource(secure=False)"
    assert repr(NoiseSource.insecure(12345).stream()) == "NoiseStream()"
    assert not hasattr(NoiseSource.fresh(), "__dict__")
    assert not hasattr(NoiseStream, "__dict__") or "__dict__" not in NoiseStream.__slots__


def test_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="seed must not be negative, got -1"):
        NoiseSource.insecure(-1)


def test_each_draw_takes_its_own_number() -> None:
    source = NoiseSource.fresh()
    assert [source.stream().draw for _ in range(3)] == [0, 1, 2]
