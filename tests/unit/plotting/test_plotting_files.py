from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushsum.errors import UsageError
from hushsum.plotting import Curve, Picture, TwoColumnMap, new_figure, save_figure

X = np.linspace(0.0, 1.0, 40)


def curve(height: float) -> Curve:
    return Curve(X, height * X, height * X - 0.1, height * X + 0.1, 0.9, truth=(X, X))


def draw(path: Path, height: float = 1.0) -> bytes:
    save_figure(Picture("T", "what it claims", curve(height), ("salary", "sum")).figure(), path)
    return path.read_bytes()


def test_a_curve_has_its_words(tmp_path: Path) -> None:
    words = draw(tmp_path / "c.svg").decode()
    # Matplotlib writes text as outlines, with the words in comments.
    for word in ("T", "what it claims", "salary", "sum", "released", "true", "90% interval, at each point"):
        assert f"<!-- {word} -->" in words


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_the_same_picture_has_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    first, again, other = (draw(tmp_path / f"c.{suffix}", height) for height in (1.0, 1.0, 2.0))
    assert first == again
    assert first != other
    assert [path.name for path in tmp_path.iterdir()] == [f"c.{suffix}"]


def test_a_heat_map_marks_what_stands_out(tmp_path: Path) -> None:
    value = np.outer(X, X)
    pictures = {}
    for name, lower in (("marked", value - 0.2), ("plain", value + 0.1)):
        path = tmp_path / f"{name}.svg"
        heat = TwoColumnMap(X, X, value, lower, 0.9, 0.1)
        save_figure(Picture("T", "C", heat, ("a", "b", "density")).figure(), path)
        pictures[name] = path.read_text()
    assert "<!-- density -->" in pictures["marked"]
    assert pictures["marked"].count("stroke-dasharray") > pictures["plain"].count("stroke-dasharray")


def test_other_formats_and_failures_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must end in one of"):
        draw(tmp_path / "c.gif")
    figure, axes = new_figure(title="T", caption="C")
    axes.set_title(r"$\frac{$")
    with pytest.raises(ValueError, match="frac"):
        save_figure(figure, tmp_path / "c.png")
    assert list(tmp_path.iterdir()) == []


def test_a_band_that_the_line_hides_is_said_to_be_narrow(tmp_path: Path) -> None:
    narrow = Curve(X, X, X - 1e-4, X + 1e-4, 0.95)
    save_figure(Picture("T", "C", narrow, ("a", "b")).figure(), tmp_path / "c.svg")
    words = (tmp_path / "c.svg").read_text()
    assert "95% interval, at each point" in words
    assert "(narrower than the line)" in words


@pytest.mark.parametrize(
    ("given", "ends"), [({}, (0.0, 1.0)), ({"signed": True}, (-2.0, 1.0)), ({"decision": True}, (-2.0, 2.0))]
)
def test_values_below_zero_have_colours_where_they_mean_something(
    given: dict[str, Any], ends: tuple[float, float]
) -> None:
    value = np.linspace(-2.0, 1.0, 40 * 40).reshape(40, 40)
    heat = TwoColumnMap(X, X, value, np.full_like(value, np.nan), 0.95, None, **given)
    axes = Picture("T", "C", heat, ("a", "b", "c")).figure().axes[0]
    norm = axes.collections[0].norm
    assert (norm.vmin, norm.vmax) == ends


def test_long_numbers_and_their_label_are_inside_the_picture() -> None:
    below = Curve(X, -2e5 * X, -3e5 * X, -1e5 * X, 0.95)
    figure = Picture("T", "C", below, ("a", "prediction")).figure()
    figure.draw_without_rendering()
    assert figure.axes[0].yaxis.label.get_window_extent().x0 >= 0.0
