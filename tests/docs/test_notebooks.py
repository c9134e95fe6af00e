"""Every notebook of ``examples`` runs, is stored without outputs, and is in the gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.notebooks import GALLERY, cells_of, notebooks, run

PAGE = GALLERY.parents[1] / "gallery.md"


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
class TestNotebooks:
    def test_it_runs(self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from matplotlib import pyplot

        monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
        names: dict[str, Any] = {}
        try:
            names = run(path, tmp_path)
            assert pyplot.get_fignums(), "a notebook draws something"
        finally:
            pyplot.close("all")
            if "service" in names:
                names["service"].kill()

    def test_it_is_stored_without_outputs_and_explains_itself(self, path: Path) -> None:
        cells = cells_of(path)
        assert cells[0][0] == "markdown"
        assert cells[0][1].startswith("# ")
        assert '"outputs": []' in path.read_text()
        assert '"output_type"' not in path.read_text()

    def test_it_is_in_the_gallery(self, path: Path) -> None:
        assert f"examples/{path.name}" in PAGE.read_text()
        assert f"figures/gallery/{path.stem}.png" in PAGE.read_text()


def test_there_are_eight() -> None:
    assert len(notebooks()) == 8
