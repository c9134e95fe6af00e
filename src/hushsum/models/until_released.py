"""Methods that a model has only until it is released."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, cast

from hushsum.errors import AlreadyReleased

Method = TypeVar("Method", bound=Callable[..., Any])


def until_released(method: Method) -> Method:
    """A method that is gone once the model is released: asking for it raises ``AlreadyReleased``.

    scikit-learn finds out with ``hasattr`` what an estimator can do, and would call what it finds.
    """
    return cast(Method, _UntilReleased(method))


class _UntilReleased:
    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: type) -> Callable[..., Any]:
        if model is None:
            return self._method
        state = getattr(model, "_state", None)
        if state is not None and state.bundle is not None:
            raise AlreadyReleased(
                "a released model takes no more records, because its budget was spent on those it had; "
                "fit again, which spends again"
            )
        return MethodType(self._method, model)
