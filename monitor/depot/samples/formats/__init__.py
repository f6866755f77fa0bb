"""Forms in which the values of a series leave the depot: one file each, with a class ``Export``.

The folder is the registry.
"""

from __future__ import annotations

import importlib
import pkgutil

from monitor.depot.samples.formats.base import Export, UnknownForm


def names() -> list[str]:
    """The forms, sorted: every module of this package but the contract."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name != "base")


def load(form: str) -> type[Export]:
    """The class of *form*. Raises UnknownForm: it is not in the listing; nothing was imported."""
    known = names()
    if form not in known:  # checked first: a name from outside must never choose what is imported
        raise UnknownForm(f"there is no form {form!r}; known are {', '.join(known)}")
    export: type[Export] = importlib.import_module(f"{__name__}.{form}").Export
    return export
