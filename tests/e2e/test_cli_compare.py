"""``hushsum compare``: two released files in, a table, JSON and a picture out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.e2e.conftest import QuickShell

import hushsum as hs


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    rng = np.random.default_rng(0)
    kernel = hs.GaussianKernel(dim=1, bandwidth=0.5)
    for seed, (name, shift) in enumerate((("spring", 0.0), ("autumn", 0.5), ("again", 0.0))):
        tally = hs.grid(kernel, bounds=(-5, 5), columns=("dose",)).add(rng.normal(shift, 1.0, (4000, 1)))
        tally.release(epsilon=1.0, insecure_noise_seed=seed).save(folder / f"{name}.hush")
    other = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.9), bounds=(-5, 5), columns=("dose",))
    other.add([[0.0]] * 100).release(epsilon=1.0, insecure_noise_seed=9).save(folder / "wide.hush")
    return folder


def test_a_table_with_the_verdict_and_a_picture(quick: QuickShell, released: Path, tmp_path: Path) -> None:
    picture = tmp_path / "difference.png"
    table = quick.ok(
        "compare", str(released / "spring.hush"), str(released / "autumn.hush"), "-o", str(picture)
    )
    for words in (
        "the distributions differ",
        "spring above autumn for dose from",
        "MMD²",
        "independent samples",
    ):
        assert words in " ".join(table.text.split())
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_json_and_a_level(quick: QuickShell, released: Path) -> None:
    pair = (str(released / "spring.hush"), str(released / "again.hush"))
    found = quick.ok("compare", *pair, "--significance", "0.001", "--json").json
    assert found["differ"] is False
    assert found["significance"] == 0.001
    assert found["mmd_squared"]["stderr"] > 0.0
    at = quick.ok("compare", *pair, *("--at=-1", "--at=0", "--at=1"), "--sum", "--json").json
    assert at["p_value"] > 0.001


def test_refusals_are_one_sentence(quick: QuickShell, released: Path, tmp_path: Path) -> None:
    spring = str(released / "spring.hush")
    assert "same kernel" in quick.refused(2, "compare", spring, str(released / "wide.hush"))
    assert "different releases" in quick.refused(2, "compare", spring, spring)
    assert "--significance" in quick.refused(
        2, "compare", spring, str(released / "again.hush"), "--significance", "2"
    )
    assert ".png" in quick.refused(2, "compare", spring, str(released / "again.hush"), "-o", "x.bmp")
    broken = tmp_path / "broken.hush"
    broken.write_bytes(b"no function")
    quick.refused(5, "compare", spring, str(broken))
