"""The mode in which the curator is sent hashes alone: the secret, the validation release, and the owner."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hushsum.errors import FileRefused, PeerRefused, UsageError
from hushsum.parties import Coordinator, Identity
from hushsum.parties.summarization import (
    PUBLIC_SEED,
    CuratorMachine,
    CuratorState,
    HashedTarget,
    HashSecret,
    Opening,
    OwnerState,
    RunTerms,
    SummaryFeatures,
    release_target,
    summary_of,
)
from tests.unit.parties.summarization.parties import (
    FEATURES,
    QUICK,
    identities,
    owner_running,
    place,
    records,
    terms_for,
)

PUBLIC = replace(FEATURES, seed=PUBLIC_SEED)
OURS, THEIRS = HashSecret(bytes(range(32))), HashSecret(bytes(32))


def hashed_target(secret: HashSecret = OURS, rho: Fraction = Fraction(1)) -> HashedTarget:
    validation = np.random.default_rng(5).normal(size=(80, 2))
    target = release_target(secret.features(PUBLIC), validation, rho, insecure_noise_seed=1)
    return HashedTarget(PUBLIC, ("a", "b"), secret.check, target)


def hashed_terms(*owners: Identity) -> RunTerms:
    return replace(terms_for(*owners, rule="threshold", cap=30, hashed=True), features=PUBLIC)


def test_a_secret_file_is_read_back_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "owners.secret"
    made = HashSecret.create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert HashSecret.load(path) == made
    assert made.seed != HashSecret.create(tmp_path / "another").seed
    with pytest.raises(UsageError, match="never replaced"):
        HashSecret.create(path)
    path.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        HashSecret.load(path)
    with pytest.raises(UsageError, match="summarize secret"):
        HashSecret.load(tmp_path / "missing")


@pytest.mark.parametrize(
    "held", [b"", b"hushsum hash secret 1\n00\n", b"hushsum hash secret 2\n" + b"0" * 64]
)
def test_what_is_no_secret_is_refused(tmp_path: Path, held: bytes) -> None:
    path = tmp_path / "owners.secret"
    path.write_bytes(held)
    path.chmod(0o600)
    with pytest.raises(FileRefused, match="holds no hash secret"):
        HashSecret.load(path)


def test_a_secret_shows_its_check_and_never_its_seed() -> None:
    assert OURS.check != THEIRS.check
    assert repr(OURS) == f"<HashSecret {OURS.check[:12]}…>"
    assert OURS.seed.bit_length() > 200
    assert f"{OURS.seed:x}" not in OURS.check
    assert str(OURS.seed) not in repr(hashed_target())


def test_a_validation_release_is_read_back_without_the_seed() -> None:
    made = replace(hashed_target(), features=OURS.features(PUBLIC))
    read = HashedTarget.from_bytes(made.to_bytes())
    assert (read.features, read.columns, read.secret_check) == (PUBLIC, ("a", "b"), OURS.check)
    assert str(OURS.seed).encode() not in made.to_bytes()
    assert (read.target.cells == made.target.cells).all()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"columns": ()}, "damaged"),
        ({"features": SummaryFeatures(2, 1.0, 21, 0)}, "does not have the features"),
        ({"target": replace(hashed_target().target, variance=Fraction(7))}, "other noise"),
        ({"target": replace(hashed_target().target, rho=Fraction(2))}, "other noise"),
        ({"target": replace(hashed_target().target, rho=Fraction(-1))}, "damaged"),
    ],
)
def test_a_validation_release_that_does_not_fit_its_promise_is_refused(
    changed: dict[str, object], reason: str
) -> None:
    bad = replace(hashed_target(), **changed)  # type: ignore[arg-type]
    with pytest.raises(FileRefused, match=reason):
        HashedTarget.from_bytes(bad.to_bytes())


def held(
    folder: Path, secrets: list[HashSecret | None], opening_check: str | None = None, *, hashed: bool = True
) -> CuratorState:
    """A run of owners with these secrets, over sockets; the curator holds none."""
    *owners, curator = identities(folder, *(f"o{i}" for i in range(len(secrets))), "curator")
    made = hashed_target()
    terms = hashed_terms(*owners) if hashed else terms_for(*owners, rule="threshold", cap=30)
    check = (made.secret_check if hashed else "") if opening_check is None else opening_check
    state = CuratorState(terms, made.target, insecure_noise_seed=3)
    opening = Opening(terms, ("a", "b"), ("c",), check)
    with place() as listening, ExitStack() as stack:
        for i, (each, secret) in enumerate(zip(owners, secrets, strict=True)):
            owner = owner_running(
                each, curator, folder / f"run{i}", seed=i, secret=secret, listening=listening
            )
            stack.enter_context(owner)
        Coordinator(curator, CuratorMachine(opening, state), patience=QUICK).serve(listening)
    return state


def test_owners_send_the_hashes_of_their_records_under_the_secret_seed(tmp_path: Path) -> None:
    state = held(tmp_path, [OURS, OURS])
    summary = summary_of(state)
    assert summary.points.shape[1] == FEATURES.width
    assert len(summary.points) > 0
    known = set()
    for i in range(2):
        points = records(i).choose("ab")
        known |= {row.tobytes() for row in OURS.features(PUBLIC).hashes(points)}
        assert not known & {row.tobytes() for row in PUBLIC.hashes(points)}
    assert {row.astype(np.int16).tobytes() for row in state.collected.points} <= known
    # Nothing that the curator keeps has the seed in it.
    assert str(OURS.seed).encode() not in state.save()


@pytest.mark.parametrize(
    ("secrets", "hashed", "reason"),
    [
        ([OURS, None], True, "given no secret"),
        ([OURS, THEIRS], True, "another secret"),
        ([OURS, OURS], False, "sends hashes only"),
    ],
)
def test_an_owner_sends_hashes_or_nothing(
    tmp_path: Path, secrets: list[HashSecret | None], hashed: bool, reason: str
) -> None:
    with pytest.raises(PeerRefused, match=reason):
        held(tmp_path, secrets, hashed=hashed)


def test_a_restart_under_another_secret_is_refused(tmp_path: Path) -> None:
    terms = hashed_terms(*identities(tmp_path, "o"))
    (name,) = terms.owners
    points, labels = records(0).choose("ab"), records(0).choose("c")
    begun = OwnerState(name, points, terms, extra=labels, features=OURS.features(PUBLIC))
    again = OwnerState(name, points, terms, extra=labels, features=OURS.features(PUBLIC))
    again.restore(begun.save())
    other = OwnerState(name, points, terms, extra=labels, features=THEIRS.features(PUBLIC))
    with pytest.raises(FileRefused, match="other records"):
        other.restore(begun.save())


def test_a_linear_model_on_hashes_is_a_kernel_model() -> None:
    """Two rings, which no linear model of the points separates, are separated by one of the hashes."""
    from sklearn.linear_model import RidgeClassifier

    rng = np.random.default_rng(1)
    angles, radius = rng.uniform(0, 2 * np.pi, 600), np.repeat([0.5, 2.0], 300)
    points = np.column_stack([radius * np.cos(angles), radius * np.sin(angles)])
    labels = (radius > 1).astype(int)
    features = OURS.features(SummaryFeatures(2, 1.0, 100, PUBLIC_SEED))
    hashes = features.hashes(points) * features.unit
    assert RidgeClassifier().fit(hashes[::2], labels[::2]).score(hashes[1::2], labels[1::2]) > 0.99
    assert RidgeClassifier().fit(points[::2], labels[::2]).score(points[1::2], labels[1::2]) < 0.7


def test_hashes_show_pairwise_distances_to_whoever_has_no_seed() -> None:
    """What the page says the mode does not hide."""
    points = np.random.default_rng(2).normal(size=(30, 3))
    public = SummaryFeatures(3, 2.0, 2000, PUBLIC_SEED)
    hashes = OURS.features(public).hashes(points) * public.unit
    near = np.clip(hashes @ hashes.T, 1e-3, 1.0)
    guessed = np.sqrt(-2.0 * public.bandwidth**2 * np.log(near))
    true = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    close = (true > 0.5) & (true < 3.0)
    assert np.abs(guessed / true.clip(1e-9) - 1.0)[close].mean() < 0.05
