"""Importers: one file for each kind of data, with a class ``Importer``. The folder is the registry."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.runs.imports.formats.base import Importer, InvalidOption, UnknownImporter
from reporters.registry import PluginRegistry

_registry = PluginRegistry[type[Importer]](
    __name__,
    __path__,
    "Importer",
    noun="importer",
    error=UnknownImporter,
    shared={"base", "documents", "opening", "results", "table", "text"},
)
names, load = _registry.names, _registry.load


def create_importer(kind: str, options: Mapping[str, str]) -> Importer:
    """Return the importer of *kind*; an option that is missing in *options* has its default.

    Raises:
        UnknownImporter: there is no such kind.
        InvalidOption: an option is unknown, or its value is invalid.
    """
    importer = load(kind)
    for name, value in options.items():
        if name not in importer.options:
            valid = ", ".join(sorted(importer.options)) or "none"
            raise InvalidOption(f"{kind} has no such option; its options are {valid}", name)
        importer.options[name].check(name, value)
    defaults = {name: option.default for name, option in importer.options.items()}
    return importer({**defaults, **options})
