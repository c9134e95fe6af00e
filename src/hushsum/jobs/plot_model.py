"""Pictures of released models: what they predict along one or two columns. Spends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hushsum._types import Floats
from hushsum.jobs.model_answers import AnsweringModel, groups_of
from hushsum.models.cluster_model import ClusterModel
from hushsum.models.regression_model import RegressionModel
from hushsum.models.table_model import TableModel
from hushsum.plotting.class_map import ClassMap, draw_class_curves, draw_class_map
from hushsum.plotting.curve import Curve, draw_curve
from hushsum.plotting.figure import new_figure
from hushsum.plotting.two_column_map import TwoColumnMap, draw_heat_map
from hushsum.records.bounds import Bounds
from hushsum.releases.bundle import Bundle
from hushsum.releases.plot import View, caption_of, figure_of, slice_note

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVE_POINTS, _MAP_POINTS = 400, 120


def model_figure(answering: AnsweringModel, bundle: Bundle, **shown: Any) -> tuple[View, Figure]:
    """A picture of a model, and what of it is shown; ``shown`` is as of :meth:`View.of_columns`.

    A model that is one released function is drawn as that function.
    """
    model = answering.model
    box = Bounds.declared(
        bundle.about["parameters"]["bounds"], answering.dim, "a model", columns=answering.columns
    )
    view = View.of_columns(answering.dim, answering.columns, box, **shown)
    if isinstance(model, TableModel):
        return view, figure_of(model.function_, view)
    points, steps = view.points(answering.dim, _CURVE_POINTS if len(view.axes) == 1 else _MAP_POINTS)
    answers = answering.answers(points, level=view.level)
    figure, axes = new_figure(
        title=f"Released {model.COMMAND} model: {_title(model, answers)}",
        caption=caption_of(bundle.claim, slice_note(answering.columns, view)),
        height=Curve.HEIGHT if len(steps) == 1 else TwoColumnMap.HEIGHT,
    )
    shares = _shares(model, answers)
    if shares is not None:
        names = groups_of(model, shares.shape[1])
        if len(steps) == 1:
            draw_class_curves(axes, steps[0], shares, names, x_label=view.labels[0])
        else:
            x, y = steps
            shape = len(y), len(x)
            largest = ClassMap(x, y, shares.argmax(axis=1).reshape(shape), shares.max(axis=1).reshape(shape))
            centres = model.centres if isinstance(model, ClusterModel) and answering.dim == 2 else None
            places = None if centres is None else centres[:, list(view.axes)]
            x_label, y_label = view.labels[0], view.labels[1]
            draw_class_map(axes, largest, names, x_label=x_label, y_label=y_label, centres=places)
        return view, figure
    value, lower, upper = _intervals(answers)
    quantity = _quantity(answers)
    if len(steps) == 1:
        curve = Curve(steps[0], value, lower, upper, view.level)
        draw_curve(axes, curve, x_label=view.labels[0], y_label=quantity)
        return view, figure
    x, y = steps
    shape = len(y), len(x)
    heat = TwoColumnMap(
        x,
        y,
        value.reshape(shape),
        np.full(shape, np.nan),
        view.level,
        None,
        simultaneous=False,
        log=view.log,
        signed=isinstance(model, RegressionModel),
        decision="decision" in answers,
    )
    draw_heat_map(axes, heat, x_label=view.labels[0], y_label=view.labels[1], value_label=quantity)
    return view, figure


def _shares(model: Any, answers: dict[str, Any]) -> Floats | None:
    """The probability of every class or cluster at each point; of k-means, 1 for the nearest."""
    if "probability" in answers:
        return np.asarray(answers["probability"], np.float64)
    if isinstance(model, ClusterModel):
        return np.asarray(answers["prediction"][:, None] == np.arange(len(model.centres)), np.float64)
    return None


def _title(model: Any, answers: dict[str, Any]) -> str:
    return "clusters" if isinstance(model, ClusterModel) else _quantity(answers)


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
    found = answers.get("decision", answers.get("prediction"))
    value = np.asarray(found, np.float64)
    value = value[:, -1] if value.ndim == 2 else value
    unknown = np.full(len(value), np.nan)
    return value, unknown, unknown
