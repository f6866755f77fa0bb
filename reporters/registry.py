"""Plug-ins of a package: each plug-in is one module, found by listing the package's folder.

A package of plug-ins declares its registry once and publishes the methods of the registry::

    _registry = PluginRegistry[type[ResourceShell]](__name__, __path__, "Shell", noun="shell")
    names, load = _registry.names, _registry.load

Listing a folder imports none of its modules. ``probes`` and ``forecasting`` may not import this module; they
list their own folders.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection, Iterable, Mapping
from typing import Generic, TypeVar, cast

import probes

PlugIn = TypeVar("PlugIn")


class UnknownPlugin(LookupError):
    """The package has no plug-in of this name. No module was imported."""


class PluginRegistry(Generic[PlugIn]):
    """The plug-ins of one package, by the names of their modules."""

    def __init__(
        self,
        package: str,
        path: Iterable[str],
        attribute: str,
        *,
        noun: str,
        error: type[Exception] = UnknownPlugin,
        shared: Collection[str] = (),
    ) -> None:
        """Describe the plug-ins of *package*, whose ``__path__`` is *path*.

        Args:
            attribute: the name that each module gives its plug-in, such as ``Shell``.
            noun: what a plug-in is called in error messages.
            error: raised with a message for a name that is not in the folder.
            shared: the modules of the package that are no plug-ins, such as ``base``.
        """
        self._package, self._path, self._attribute = package, path, attribute
        self._noun, self._error, self._shared = noun, error, shared

    def names(self) -> list[str]:
        """Return the names of the plug-ins, sorted."""
        return list(self._names)

    def load(self, name: str) -> PlugIn:
        """Return the plug-in called *name*. Raises the registry's error for an unknown name."""
        if name not in self._names:  # checked first: a name from outside must never choose what is imported
            raise self._error(f"there is no {self._noun} {name!r}; known are {', '.join(self._names)}")
        return cast("PlugIn", getattr(importlib.import_module(f"{self._package}.{name}"), self._attribute))

    def load_all(self) -> Mapping[str, PlugIn]:
        """Return every plug-in by its name, sorted by name."""
        return self._plugins

    @functools.cached_property  # each run asks several times
    def _names(self) -> tuple[str, ...]:
        return tuple(sorted(probes.modules_in(self._path).difference(self._shared)))

    @functools.cached_property
    def _plugins(self) -> Mapping[str, PlugIn]:
        return {name: self.load(name) for name in self._names}
