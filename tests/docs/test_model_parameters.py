"""The reference of the models' parameters, and every docstring, agree with the declarations."""

from __future__ import annotations

import pytest

from hushsum.jobs.model_catalogue import model_class, model_names
from tests.docs.model_parameters import PAGE, page


def test_the_page_is_as_the_declarations_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.model_parameters"


@pytest.mark.parametrize("name", model_names())
def test_every_docstring_has_every_parameter(name: str) -> None:
    kind = model_class(name)
    documented = kind.__doc__ or ""
    assert documented.count("    Parameters\n    ----------\n") == 1
    for each in kind.PARAMETERS:
        assert f"\n    {each.name} : {each.rule()}" in documented
        assert each.help.split()[0] in documented
