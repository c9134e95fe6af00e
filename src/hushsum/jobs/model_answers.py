"""What a released model answers at points of any form. Spends nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, HushsumError
from hushsum.jobs.model_records import values_of
from hushsum.releases.bundle import Bundle


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """A released model and the names of its columns, by which points are put in order."""

    model: Any
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, bundle: Bundle) -> AnsweringModel:
        """The model of a bundle."""
        # Only here: scikit-learn takes longer to import than the rest of a service takes to start.
        import hushsum.models  # noqa: F401  # importing them registers them
        from hushsum.models.load import model_of

        model: Any = model_of(bundle)
        named = getattr(model, "feature_names_in_", None)
        if named is None:
            return cls(model, None)
        # Checking names for every query would take longer than most answers.
        del model.feature_names_in_
        return cls(model, tuple(str(name) for name in named))

    @property
    def dim(self) -> int:
        """How many numbers a point has."""
        return int(self.model.n_features_in_)

    def answers(self, points: object, *, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """Everything the model says of points; see :func:`all_answers`.

        Raises
        ------
        DataRefused
            if they are not points of this model.
        """
        values = values_of(points, self.columns, self.dim)
        try:
            with np.errstate(all="ignore"):
                return all_answers(self.model, values, level=level)
        except HushsumError:
            raise
        except (ValueError, ArithmeticError):
            pass
        raise DataRefused(rule="the points must be finite numbers in the columns of this model", got="others")


def answers_of(model: Any, points: object) -> dict[str, NDArray[Any]]:
    """All answers of a model at points, a column for each answer.

    What it says of every class has the class in its name; of two classes the one decision value is that for
    the second.
    """
    answers: dict[str, NDArray[Any]] = {}
    for name, values in all_answers(model, points).items():
        if values.ndim == 1:
            answers[name] = values
        elif name == "decision" and values.shape[1] == 2:
            answers[name] = values[:, 1]
        else:
            labels = groups_of(model, values.shape[1])
            answers |= {f"{name}_{label}": values[:, i] for i, label in enumerate(labels)}
    return answers


def groups_of(model: Any, number: int) -> list[str]:
    """What the groups are called that a model has a value for: its classes, or numbers of clusters."""
    return [str(each) for each in getattr(model, "classes_", range(number))]


def all_answers(model: Any, points: object, *, level: float | None = None) -> dict[str, NDArray[Any]]:
    """All answers of a model at points: of shape (n,), or (n, classes) if it has a value for every class.

    ``prediction``; ``value`` with ``stderr``, ``lower`` and ``upper`` at ``level``; ``probability`` or
    ``decision`` of every class, the largest being the prediction; the ``score`` of a density. ``stderr``
    without ``value`` is that of a decision value. Each is there only if the model has it.
    """
    answers: dict[str, NDArray[Any]] = {}
    if hasattr(model, "predict"):
        answers["prediction"] = np.asarray(model.predict(points))
    if hasattr(model, "query"):
        queried = model.query(points) if level is None else model.query(points, level=level)
        answers |= {
            "value": queried.value,
            "stderr": queried.stderr,
            "lower": queried.lower,
            "upper": queried.upper,
        }
    if hasattr(model, "predict_proba"):
        answers["probability"] = np.asarray(model.predict_proba(points), np.float64)
    elif hasattr(model, "score_samples"):
        # Both kinds say so of themselves; computing it anew would take as long as all the rest.
        is_density = model.__sklearn_tags__().estimator_type != "outlier_detector"
        answers["score"] = np.log(answers["prediction"]) if is_density else answers["value"]
    elif hasattr(model, "decision_function") and not hasattr(model, "query"):
        values = np.asarray(model.decision_function(points), np.float64)
        two = values.ndim == 1 and hasattr(model, "classes_")
        answers["decision"] = np.column_stack((-values, values)) if two else values
        if hasattr(model, "noise_stderr_"):
            answers["stderr"] = np.full(len(values), model.noise_stderr_)
    return answers
