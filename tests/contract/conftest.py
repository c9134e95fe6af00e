"""Fixtures that contracts share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from hushsum.errors import PublicAssumption
from hushsum.models import PrivateModel
from tests.contract.fitted_models import MODELS
from tests.ledger_fixtures import postgres, server, sqlite, state

__all__ = ["model_kind", "postgres", "server", "sqlite", "state"]


@pytest.fixture(params=MODELS, ids=lambda model: model.__name__)
def model_kind(request: pytest.FixtureRequest) -> Iterator[type[PrivateModel]]:
    """Each model; what it assumes to be public is known here, and not warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicAssumption)
        yield request.param
