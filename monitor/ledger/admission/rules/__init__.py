"""The rules: one file each, with a function ``judge``. The folder is the registry."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from monitor.ledger.admission.base import Rule


def names() -> list[str]:
    """The names of all rules, sorted."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__))


@functools.cache
def every() -> tuple[Rule, ...]:
    """All rules, in the order of their names."""
    return tuple(importlib.import_module(f"{__name__}.{name}").judge for name in names())
