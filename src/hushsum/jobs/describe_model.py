"""Everything public about a released model, in words and numbers that a page can show."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hushsum.jobs.model_answers import AnsweringModel
from hushsum.records.bounds import Bounds
from hushsum.releases.bundle import Bundle

MOST_LISTED: Final = 100
"""How many numbers of an array a description lists."""


def describe_model(bundle: Bundle, *, target: str | None, size: int) -> dict[str, Any]:
    """What a released model is: its kind, columns, bounds, classes and parameters; which answers it gives;
    and what it claims. All of it is public.

    ``target`` is what the learned column is called, which the model itself does not know.
    """
    answering = AnsweringModel.of(bundle)
    about, features = bundle.about, bundle.about["features"]
    box = Bounds.declared(about["parameters"]["bounds"], features, "a model", columns=answering.columns)
    pairs = box.as_json()
    middle = np.array([[(low + high) / 2.0 for low, high in pairs]])
    return {
        "kind": "released model",
        "model": {
            "kind": answering.model.COMMAND,
            "estimator": about["model"],
            "mode": "file",
            "features": about["feature_names"],
            "bounds": pairs,
            "target": target,
            "target_bounds": about["parameters"].get("target_bounds"),
            "classes": (about.get("classes") or {}).get("values"),
            "parameters": about["parameters"],
            "answers": list(answering.answers(middle)),
            "arrays": {
                name: values.tolist() for name, values in bundle.arrays.items() if values.size <= MOST_LISTED
            },
        },
        "columns": about["feature_names"],
        "assumptions": list(about["assumptions"]),
        "claim": bundle.claim.in_numbers(),
        "producer": bundle.producer,
        "size": size,
    }
