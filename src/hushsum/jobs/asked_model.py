"""A released model that answers points of any form, one question after the other. Spends nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, HushsumError
from hushsum.jobs.model_records import values_of
from hushsum.jobs.predict_model import all_answers
from hushsum.models.load import model_of
from hushsum.releases.bundle import Bundle


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model and the names of its columns, by which points are put in order before it sees them."""

    model: Any
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, bundle: Bundle) -> AskedModel:
        """The model of a bundle."""
        import hushsum.models  # noqa: F401  # the models make themselves known

        model: Any = model_of(bundle)
        named = getattr(model, "feature_names_in_", None)
        if named is None:
            return cls(model, None)
        # Checking names for every question would take longer than most answers.
        del model.feature_names_in_
        return cls(model, tuple(str(name) for name in named))

    @property
    def dim(self) -> int:
        """How many numbers a point has."""
        return int(self.model.n_features_in_)

    def answers(self, points: object, *, level: float = 0.95) -> dict[str, NDArray[Any]]:
        """Everything the model says of points; see :func:`hushsum.jobs.predict_model.all_answers`.

        Raises
        ------
        DataRefused
            for what are no points of this model.
        """
        values = values_of(points, self.columns, self.dim)
        try:
            with np.errstate(all="ignore"):
                return all_answers(self.model, values, level=level)
        except HushsumError:
            raise
        except (ValueError, ArithmeticError):
            pass
        raise DataRefused("the points must suit this model, got others; check their columns")
