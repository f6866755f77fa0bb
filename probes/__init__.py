"""The probes, one file each. The folder is the registry."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from probes.base import Probe

CATEGORIES = ("setup", "transfer", "queue", "compute", "cleanup")  # of stages
_CONTRACTS = {"base", "grid"}


def names() -> list[str]:
    """Return the sorted names of all probes: every module of this folder except the contracts."""
    return list(_listed())


@functools.cache  # called in every run
def _listed() -> tuple[str, ...]:
    return tuple(sorted(modules_in(__path__) - _CONTRACTS))


def modules_in(folders: Iterable[str]) -> set[str]:
    """Return the names of the modules in *folders* of a package, which may lie in an archive; none is loaded.

    ``pkgutil`` lists a directory, too, but loads ``inspect`` for that: a megabyte of the agent of a site.
    """
    names: set[str] = set()
    for folder in folders:
        if os.path.isdir(folder):  # noqa: PTH112  # of __path__, which has texts
            files = (os.path.splitext(name) for name in os.listdir(folder))  # noqa: PTH122, PTH208
            names.update(stem for stem, suffix in files if suffix == ".py" and stem != "__init__")
        else:
            import pkgutil  # noqa: PLC0415

            names.update(module.name for module in pkgutil.iter_modules([folder]) if not module.ispkg)
    return names


def load(name: str) -> type[Probe]:
    """Return the class of the probe called *name*.

    Raises:
        UnknownProbe: *name* is not one of ``names()``; no module was imported.
    """
    existing = names()
    if name not in existing:  # before the import: a name from outside must not choose the module
        from probes.base import UnknownProbe  # noqa: PLC0415  # this package lists folders for others, too

        raise UnknownProbe(f"there is no probe {name!r}; known are {', '.join(existing)}")
    probe: type[Probe] = importlib.import_module(f"{__name__}.{name}").Probe
    return probe
