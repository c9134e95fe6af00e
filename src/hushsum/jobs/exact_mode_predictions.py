"""A model in exact mode at work: queries are answered from one noise path, permanently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hushsum.jobs.model_records import values_of
from hushsum.releases.answers import normal_answers
from hushsum.served import RollbackGuard, ServedFunction, SqliteStore, reopen

if TYPE_CHECKING:
    from hushsum.jobs.exact_mode_fit import SecretModel


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactModel:
    """A model in exact mode that answers questions; secret inside, public answers."""

    served: list[ServedFunction]
    about: dict[str, Any]

    @classmethod
    def reopened(
        cls,
        place: Path,
        *,
        encryption_key: bytes | None,
        rollback_guard: Callable[[int], RollbackGuard] | None = None,
    ) -> ExactModel:
        """The model in a folder, opened and paid for before.

        Parameters
        ----------
        rollback_guard : callable, optional
            Who remembers for the function of a number how many answers it has returned.

        Raises
        ------
        FileRefused
            if one of its files is gone, is another's, or is an older copy.
        """
        from hushsum.jobs.exact_mode_fit import SecretModel, answers_file  # imports scikit-learn

        kept = SecretModel.load(place, encryption_key=encryption_key)
        serving = {"most_questions": kept.about["most_questions"], "calibration": kept.about["calibration"]}
        served = [
            reopen(
                function,
                SqliteStore(answers_file(place, number)),
                kept.claim.promise,
                rollback_guard=None if rollback_guard is None else rollback_guard(number),
                **serving,
            )
            for number, function in enumerate(kept.functions)
        ]
        return cls(served, kept.about)

    @property
    def dim(self) -> int:
        """How many numbers a point has."""
        return len(self.about["features"])

    def answers(self, points: object, *, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """Predictions at points, the same every time, in the form of a released model.

        Raises
        ------
        QuestionsSpent
            if too many distinct points were queried; earlier points are still answered.
        DataRefused
            for what are no points of this model.
        """
        values = values_of(points, self.about["features"], self.dim)
        noise = self.served[0].noise_stderr
        values_of_functions = np.column_stack([each(values) for each in self.served])
        if self.about["classes"] is not None:
            from hushsum.models.parameters import labels_from_json  # imports scikit-learn

            labels = labels_from_json(self.about["classes"])
            decision = (
                np.column_stack((-values_of_functions, values_of_functions))
                if values_of_functions.shape[1] == 1
                else values_of_functions
            )
            prediction = labels[np.argmax(decision, axis=1)]
            return {"prediction": prediction, "decision": decision, "stderr": np.full(len(values), noise)}
        value, prediction = values_of_functions[:, 0], np.maximum(values_of_functions[:, 0], noise)
        if self.about["target_bounds"] is not None:
            low, high = self.about["target_bounds"]
            value = value + (low + high) / 2.0
            prediction = np.clip(value, low, high)
        known = normal_answers(value, np.full(len(values), noise), level, values)
        return {
            "prediction": prediction,
            "value": known.value,
            "stderr": known.stderr,
            "lower": known.lower,
            "upper": known.upper,
        }

    def __repr__(self) -> str:
        return "<ExactModel CONFIDENTIAL>"


def describe_exact(kept: SecretModel) -> dict[str, Any]:
    """The public description of a model in exact mode, like that of `describe_model` for a file."""
    about = dict(kept.about)
    labels = about.pop("classes")
    for secret in ("promise", "calibration"):
        del about[secret]
    answers = ["prediction", "value", "stderr", "lower", "upper"]
    return {
        "kind": "served model",
        "model": {
            **about,
            "classes": None if labels is None else labels["values"],
            "answers": answers if labels is None else ["prediction", "decision", "stderr"],
        },
        "columns": about["features"],
        "assumptions": list(kept.claim.assumptions),
        "claim": kept.claim.in_numbers(),
    }
