"""The probes, one file each. The folder is the registry."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from probes.base import Probe, UnknownProbe

_CONTRACTS = {"base", "grid"}


def names() -> list[str]:
    """Return the sorted names of all probes: every module of this folder except the contracts."""
    return list(_listed())


@functools.cache  # called in every run
def _listed() -> tuple[str, ...]:
    modules = [module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg]
    return tuple(sorted(set(modules) - _CONTRACTS))


def load(name: str) -> type[Probe]:
    """Return the class of the probe called *name*.

    Raises:
        UnknownProbe: *name* is not one of ``names()``; no module was imported.
    """
    existing = names()
    if name not in existing:  # before the import: a name from outside must not choose the module
        raise UnknownProbe(f"there is no probe {name!r}; known are {', '.join(existing)}")
    probe: type[Probe] = importlib.import_module(f"{__name__}.{name}").Probe
    return probe
