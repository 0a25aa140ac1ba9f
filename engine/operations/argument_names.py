"""Arguments that PyIceberg calls by other names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def also_named(**names: str) -> Callable[[Function], Function]:
    """Take keywords under second names: each is the name of a parameter.

    Raises:
        TypeError: From the decorated function, where a call gives an argument under both names.
    """

    def decorated(function: Function) -> Function:
        @wraps(function)
        def called(*args: Any, **given: Any) -> Any:  # noqa: ANN401 - whatever the function takes and returns
            for other in names.keys() & given.keys():
                if names[other] in given:
                    raise TypeError(f"{function.__name__}() got {names[other]!r} and {other!r}, which is the same")
                given[names[other]] = given.pop(other)
            return function(*args, **given)

        return called  # type: ignore[return-value]

    return decorated
