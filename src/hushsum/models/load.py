"""Read a released model from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushsum._types import PathOrFile
from hushsum.errors import FileRefused, PerSurface
from hushsum.models.base import MODELS, PrivateModel, sensible_file
from hushsum.models.model_state import ModelState
from hushsum.models.parameters import from_json
from hushsum.models.public_rows import PUBLIC_PARAMETERS
from hushsum.releases.bundle import Bundle
from hushsum.releases.load import load_released

_MOST_FEATURES = 1 << 20


def load_model(source: PathOrFile) -> PrivateModel:
    """The released model in a ``.hush`` file: an estimator that answers as the one that was saved.

    Reading takes time in proportion to the file. What it requires to be computed is computed, and whether
    its parts fit together is checked, by the first query, which may refuse the file too.

    Raises
    ------
    FileRefused
        if the file is damaged, or holds something else than a model that this Hushsum knows.
    UsageError
        if there is no such file.

    Examples
    --------
    >>> import io
    >>> from hushsum.models import PrivateModes
    >>> model = PrivateModes(epsilon=1.0, random_state=0).fit(np.zeros((500, 1)))
    >>> file = io.BytesIO()
    >>> model.save(file)
    >>> _ = file.seek(0)
    >>> load_model(file).claim_ == model.claim_
    True
    """
    bundle = load_released(source)
    if not isinstance(bundle, Bundle):
        raise FileRefused(
            rule="the file holds one released function, not a model",
            remedy=PerSurface("read it with hushsum.load", "query it with: hushsum query", "query it"),
        )
    return model_of(bundle)


def model_of(bundle: Bundle) -> PrivateModel:
    """The estimator that a bundle describes."""
    name = bundle.about.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise FileRefused(
            rule=f"the file holds a model {name!r}, which this version of Hushsum does not have",
            remedy="upgrade it",
        )
    with sensible_file():
        return _restored(MODELS[name], bundle)


def _restored(kind: type[PrivateModel], bundle: Bundle) -> PrivateModel:
    about: dict[str, Any] = dict(bundle.about)
    given = {name: from_json(value) for name, value in about["parameters"].items()}
    if kind.not_stored() & set(given):
        raise ValueError("parameters")
    features, seed, names = about["features"], about["seed"], about["feature_names"]
    if type(features) is not int or not 1 <= features <= _MOST_FEATURES or type(seed) is not int:
        raise ValueError("features")
    model = kind(**given)
    model.n_features_in_ = features
    if names is not None:
        if len(names) != features or not all(isinstance(name, str) for name in names):
            raise ValueError("feature names")
        model.feature_names_in_ = np.array(names, dtype=object)
    model.check_parameters()
    facts = {name: value for name, value in about.items() if name != "seed"}
    model._public_assumed = PUBLIC_PARAMETERS in about["assumptions"]
    model._restore(facts)
    model._state = ModelState.opened(bundle, facts, seed)
    model._state.from_file = True
    known = model._part_columns()
    if not set(bundle.parts) <= set(known):
        raise ValueError("parts")
    for name, part in bundle.parts.items():
        columns = known[name]
        if None not in (part.kernel.dim, columns) and part.kernel.dim != columns:
            raise ValueError("columns of a part")
    return model
