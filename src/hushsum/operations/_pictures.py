"""Pictures in files: private heat maps of points, and drawings of released functions and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np

from hushsum._types import Floats
from hushsum.declaration import setting
from hushsum.errors import UsageError
from hushsum.methods import ADAPTIVE_GRID
from hushsum.planning import KernelSpec, MethodSpec
from hushsum.plotting import (
    MAP_FORMATS,
    MAP_METHOD,
    MAP_SIZE,
    ClassCurves,
    ClassMap,
    Curve,
    HeatMap,
    Picture,
    TwoColumnMap,
    View,
    check_format,
    function_picture,
    label_dates,
    map_kernel,
    save_figure,
)
from hushsum.privacy import Claim, ReleaseRequest
from hushsum.records import Bounds, DateFormat, choose_columns
from hushsum.releases import Bundle, PlotKeywords, ReleasedFunction

from ._answers import AnsweringModel, groups_of
from ._deliver import Destination, FunctionReleased, release_records
from ._files import Progress, RecordFiles, check_answers_output, check_output, open_function, open_released

__all__ = ["MapChoice", "draw_heat_map", "make_heat_map", "plot_function"]

FUNCTION: Final = ".hush"
PAGE: Final = ".html"


@dataclass(frozen=True, slots=True)
class MapChoice:
    """The settings of a map, all of them public."""

    bandwidth: float | None = setting(
        None, "Distance over which points are smoothed: metres, or units of the columns with --plane."
    )
    plane: bool = setting(False, "The columns lie in a plane; they are no longitude and latitude.")
    size: int = setting(MAP_SIZE, "Pixels along each side of pictures and rasters.")
    level: float = setting(0.95, "Level of the intervals.")
    adaptive: bool = setting(False, "Boxes that are small where points are dense, not a grid; pure ε.")
    as_released: bool = setting(False, "Draw the released values, some below 0, not the nearest of records.")


@dataclass(frozen=True, slots=True)
class MapWritten:
    """The files of a map, and its release."""

    outputs: tuple[str, ...]
    released: FunctionReleased

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        claim, release = self.released.claim.in_numbers(), self.released.as_json()
        return {"outputs": list(self.outputs), "claim": claim, "release": release}


def draw_heat_map(source: str, outputs: Sequence[str], choice: MapChoice) -> Claim:
    """Write the maps of a released function of two columns; its claim. Spends nothing."""
    _check_outputs(outputs, inputs=[source])
    function = open_function(source)
    _save(function, outputs, choice)
    return function.claim


def make_heat_map(
    records: RecordFiles,
    outputs: Sequence[str],
    to: Destination,
    request: ReleaseRequest,
    choice: MapChoice,
    *,
    declared_records: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MapWritten:
    """Release the density of points on a grid, and write its maps.

    The released function is kept in a ``.hush`` file: that of the outputs, or one beside the first of them,
    in place of the output of the destination.
    Further maps are drawn from it without spending anything.

    Raises
    ------
    UsageError, DataRefused, ClaimError, BudgetExhausted
        as :func:`hushsum.operations._deliver.release_records`; everything that can be refused is refused
        before anything is spent.
    """
    _check_outputs(outputs, inputs=records.paths)
    bounds = records.bounds
    if bounds is None or len(bounds) != 2:
        rule = "must be declared for a heat map, low:high for each of two columns"
        got = "none" if bounds is None else len(bounds)
        raise UsageError("bounds", rule, got=got, remedy="such as -74.3:-73.7,40.5:40.9")
    if choice.bandwidth is None:
        remedy = "give the distance over which points are smoothed, in metres for longitude and latitude"
        raise UsageError("bandwidth", "must be given for a heat map", got="none", remedy=remedy)
    if choice.adaptive and any(Path(each).suffix.lower() == PAGE for each in outputs):
        rule = "must not be a page for an adaptive map: a page does not answer boxes of unequal size"
        raise UsageError("output", rule, got=PAGE, remedy="write .png, .geojson or .tif")
    kept = next((each for each in outputs if Path(each).suffix.lower() == FUNCTION), None)
    target = str(Path(outputs[0]).with_suffix(FUNCTION)) if kept is None else kept
    to = replace(to, output=target)
    to.check(records.paths)
    kernel, bandwidth = map_kernel(bounds, choice.bandwidth, geographic=not choice.plane)
    released = release_records(
        records,
        to,
        request,
        kernel=KernelSpec(kernel=kernel, bandwidth=bandwidth),
        method=MethodSpec(method=ADAPTIVE_GRID if choice.adaptive else MAP_METHOD, records=declared_records),
        threads=threads,
        progress=progress,
    )
    _save(released.function, [each for each in outputs if each != target], choice)
    return MapWritten((*outputs, *([] if kept is not None else [target])), released)


def _check_outputs(outputs: Sequence[str], *, inputs: Sequence[str]) -> None:
    for each in outputs:
        if check_format(each, MAP_FORMATS).suffix.lower() != FUNCTION:
            check_answers_output(each, inputs=inputs)


def _save(function: ReleasedFunction, outputs: Sequence[str], choice: MapChoice) -> None:
    drawn = HeatMap(function, not choice.plane, choice.level, choice.as_released)
    for each in outputs:
        drawn.save(each, size=choice.size)


_CURVE_POINTS, _MAP_POINTS = 400, 120


def plot_function(
    source: str, output: str, *, dates: DateFormat | None = None, **shown: Unpack[PlotKeywords]
) -> View:
    """Write a picture; its suffix says whether as PNG, SVG or PDF. Returns what it shows: ``shown`` is as of
    ``f.plot``. Axes of the columns of ``dates`` have dates along them.

    Raises
    ------
    UsageError
        if there are no columns of numbers to draw, or neither bounds nor a range says where to look.
    """
    check_format(check_output(output, inputs=[source]))
    released = open_released(source)
    if isinstance(released, Bundle):
        if shown.get("of", "mean") != "mean":
            raise UsageError("sum", "is for functions", got="a model")
        view, picture = _model_picture(AnsweringModel.of(released), released, **shown)
        columns = released.about["feature_names"]
    else:
        assert isinstance(released, ReleasedFunction)
        view = View.of(released, **shown)
        picture, columns = function_picture(released, view), released.columns
    figure = picture.figure()
    if dates is not None:
        if columns is None:
            rule, got = "must name columns", "a file whose columns have no names"
            raise UsageError("dates", rule, got=got)
        positions = choose_columns(columns, dates.columns, "dates")
        drawn = figure.axes[0]
        for axis, column in zip((drawn.xaxis, drawn.yaxis), view.axes, strict=False):
            if column in positions:
                label_dates(axis, dates.days, dates.of_days)
    save_figure(figure, output)
    return view


def _model_picture(
    answering: AnsweringModel, bundle: Bundle, **shown: Unpack[PlotKeywords]
) -> tuple[View, Picture]:
    """Draw the predictions of a model along one or two columns.

    A model that is a released function is drawn as a function.
    """
    from hushsum.models import ClusterModel, RegressionModel, TableModel

    model, dim, columns = answering.model, answering.dim, answering.columns
    box = Bounds.declared(bundle.about["parameters"]["bounds"], dim, "a model", columns=columns)
    view = View.of_columns(dim, columns, box, **shown)
    if isinstance(model, TableModel):
        return view, function_picture(model.function_, view)
    points, steps = view.points(dim, _CURVE_POINTS if len(view.axes) == 1 else _MAP_POINTS)
    answers = answering.answers(points, level=view.level)
    quantity = _quantity(answers)
    title = f"Released {model.COMMAND} model: {'clusters' if isinstance(model, ClusterModel) else quantity}"
    caption = f"{view.note(columns)} {bundle.claim.sentence()}".strip()
    shares = _shares(model, answers)
    content: Curve | TwoColumnMap | ClassMap | ClassCurves
    if shares is not None:
        names = groups_of(model, shares.shape[1])
        if len(steps) == 1:
            content, quantity = ClassCurves(steps[0], shares, names), "probability"
        else:
            x, y = steps
            centers = model.centers if isinstance(model, ClusterModel) and dim == 2 else None
            places = None if centers is None else centers[:, list(view.axes)]
            largest, most = (each.reshape(len(y), len(x)) for each in (shares.argmax(1), shares.max(1)))
            content = ClassMap(x, y, largest, most, names, places)
    else:
        value, lower, upper = _intervals(answers)
        if len(steps) == 1:
            content = Curve(steps[0], value, lower, upper, view.level)
        else:
            x, y = steps
            content = TwoColumnMap(
                x,
                y,
                value.reshape(len(y), len(x)),
                np.full((len(y), len(x)), np.nan),
                view.level,
                None,
                simultaneous=False,
                log=view.log,
                signed=isinstance(model, RegressionModel),
                decision="decision" in answers,
            )
    return view, Picture(title, caption, content, (*view.labels, quantity))


def _shares(model: Any, answers: dict[str, Any]) -> Floats | None:
    """The probability of every class or cluster at each point; of k-means, 1 for the nearest."""
    from hushsum.models import ClusterModel

    if "probability" in answers:
        return np.asarray(answers["probability"], np.float64)
    if isinstance(model, ClusterModel):
        return np.asarray(answers["prediction"][:, None] == np.arange(len(model.centers)), np.float64)
    return None


def _quantity(answers: dict[str, Any]) -> str:
    if "probability" in answers:
        return "probability of each class"
    if "decision" in answers:
        return "decision"
    return "score" if "score" in answers and "value" not in answers else "prediction"


def _intervals(answers: dict[str, Any]) -> tuple[Floats, Floats, Floats]:
    """A number per point, and its interval where the model has one."""
    if "value" in answers:
        return answers["value"], answers["lower"], answers["upper"]
    value = np.asarray(answers.get("decision", answers.get("prediction")), np.float64)
    value = value[:, -1] if value.ndim == 2 else value
    unknown = np.full(len(value), np.nan)
    return value, unknown, unknown
