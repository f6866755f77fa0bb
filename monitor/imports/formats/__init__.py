"""Histories that others measured: one file for each kind of data, with a class ``Importer``. The folder is
the registry."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping

from monitor.imports.formats.base import Importer, InvalidOption, UnknownImporter

_NOT_IMPORTERS = {"base", "documents", "opening", "table", "text"}


@functools.cache
def names() -> tuple[str, ...]:
    """The kinds of data, sorted: every module here but the contract and what importers share."""
    return tuple(
        sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name not in _NOT_IMPORTERS)
    )


def load(kind: str) -> type[Importer]:
    """The class of *kind*. Raises UnknownImporter: it is not in the listing; nothing was imported."""
    known = names()
    if kind not in known:  # checked first: a name from outside must never choose what is imported
        raise UnknownImporter(f"there is no importer {kind!r}; known are {', '.join(known)}")
    importer: type[Importer] = importlib.import_module(f"{__name__}.{kind}").Importer
    return importer


def made(kind: str, options: Mapping[str, str]) -> Importer:
    """The importer of *kind* with *options*; those that are left out are as they are by default.

    Raises:
        UnknownImporter, InvalidOption: with what is wrong.
    """
    importer = load(kind)
    for name, value in options.items():
        if name not in importer.options:
            known = ", ".join(sorted(importer.options)) or "none"
            raise InvalidOption(f"{kind} has no such option; known are {known}", name)
        importer.options[name].check(name, value)
    defaults = {name: option.default for name, option in importer.options.items()}
    return importer({**defaults, **options})
