"""The example of texts, on embeddings of AG News that were made before. Needs ``HUSHSUM_DATA``."""

from __future__ import annotations

import os

import numpy as np
import pytest
from examples.text_classifier import Texts, classifier, shared_embeddings, similarity

pytestmark = pytest.mark.skipif(not os.environ.get("HUSHSUM_DATA"), reason="HUSHSUM_DATA is not set")


def test_texts_are_classified_and_compared() -> None:
    """Noise moves the accuracy by 0.003; 0.84 is 7 standard deviations below what is measured."""
    texts = shared_embeddings()
    assert classifier(texts).score(texts.test, texts.truth) > 0.84
    news = texts.y != 2
    detector = similarity(Texts(texts.X[news][:3000], texts.y[news][:3000], texts.test, texts.truth))
    # Sports are unlike the other topics more often than these are unlike themselves.
    strange = detector.predict(texts.test[:3000]) == -1
    sports = texts.truth[:3000] == 2
    assert strange[sports].mean() > 3.0 * strange[~sports].mean()
    assert (detector.predict(np.random.default_rng(0).normal(size=(200, 384))) == -1).mean() > 0.9
