"""The probes: one file each. The folder is the registry."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from probes.base import Probe, UnknownProbe

_NOT_PROBES = {"base", "foreign", "grid", "kernels", "steps"}


def names() -> list[str]:
    """The names of all probes, sorted: every module here but the contracts and the shared steps."""
    return list(_listed())


@functools.cache  # every run asks
def _listed() -> tuple[str, ...]:
    return tuple(sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name not in _NOT_PROBES))


def load(name: str) -> type[Probe]:
    """Return the class of the probe called *name*.

    Raises:
        UnknownProbe: *name* is not in the listing; nothing was imported.
    """
    known = names()
    if name not in known:  # checked first: a name from outside must never choose what is imported
        raise UnknownProbe(f"there is no probe {name!r}; known are {', '.join(known)}")
    probe: type[Probe] = importlib.import_module(f"{__name__}.{name}").Probe
    return probe
