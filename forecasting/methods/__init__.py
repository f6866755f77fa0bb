"""The forecasting methods: one file each. The folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache

from forecasting.base import ForecastMethod, UnknownMethod


def names() -> list[str]:
    """Return the names of all methods, sorted: every module of this package."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__))


@cache
def load(name: str) -> type[ForecastMethod]:
    """Return the class of the method called *name*. Each series needs an instance, made without arguments.

    Raises:
        UnknownMethod: *name* is not one of ``names()``; no module was imported.
    """
    existing = names()
    if name not in existing:  # checked first: a name from outside must never choose the imported module
        raise unknown(name, existing)
    method: type[ForecastMethod] = importlib.import_module(f"{__name__}.{name}").Method
    return method


def unknown(name: str, existing: Iterable[str]) -> UnknownMethod:
    """Return the error for an unknown method *name*; its message lists the *existing* methods."""
    return UnknownMethod(f"there is no forecasting method {name!r}; known are {', '.join(existing)}")
