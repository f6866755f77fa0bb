"""The forecasting methods: one file each. The folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache

from forecasting.base import ForecastMethod, UnknownMethod


def names() -> list[str]:
    """The names of all methods, sorted: every module of this package."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__))


@cache
def load(name: str) -> type[ForecastMethod]:
    """Return the class of the method called *name*; it is made without arguments, one for each series.

    Raises:
        UnknownMethod: *name* is not in the listing; nothing was imported.
    """
    known = names()
    if name not in known:  # checked first: a name from outside must never choose what is imported
        raise unknown(name, known)
    method: type[ForecastMethod] = importlib.import_module(f"{__name__}.{name}").Method
    return method


def unknown(name: str, known: Iterable[str]) -> UnknownMethod:
    """The error for who asks for *name* where only *known* methods are."""
    return UnknownMethod(f"there is no forecasting method {name!r}; known are {', '.join(known)}")
