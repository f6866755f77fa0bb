"""The folder is the registry: what the three folders of ways to reach a site have in common."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any


class UnknownKind(LookupError):
    """There is no plug-in of that name; nothing was imported."""


def names(path: Iterable[str]) -> list[str]:
    """The plug-ins of a package with this ``__path__``, sorted: every module in it."""
    return list(_listed(tuple(path)))


@functools.cache  # every run asks several times
def _listed(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(info.name for info in pkgutil.iter_modules(path)))


def load(package: str, path: Iterable[str], class_name: str, kind: str) -> Any:
    """The class called *class_name* in the module *kind* of *package*. Raises UnknownKind."""
    known = names(path)
    if kind not in known:  # checked first: a name from outside must never choose what is imported
        raise UnknownKind(f"there is no {class_name.lower()} {kind!r}; known are {', '.join(known)}")
    return getattr(importlib.import_module(f"{package}.{kind}"), class_name)
