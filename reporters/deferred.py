"""Modules of the standard library that load when they are first used.

Some modules import others for functions that a program never calls: ``dataclasses`` imports ``inspect``, and
with it ``ast`` and ``dis``; ``urllib.parse`` imports ``ipaddress``. The agent of a site, which runs for
months, saves 1.5 MB of memory, and at its start the time to load them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_loading = threading.RLock()


class DeferredModule(ModuleType):
    """A module whose code runs at the first use of an attribute that it lacks.

    ``importlib.util.LazyLoader`` defers the code of imports only where all of them come after it: the next
    import of the same module runs it.
    """

    def __getattr__(self, name: str) -> Any:
        with _loading:
            if self.__dict__.pop("_is_deferred", False):
                spec = self.__spec__
                if spec is None or spec.loader is None:
                    raise AssertionError(f"{self.__name__} has no loader")
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
            return ModuleType.__getattribute__(self, name)


def defer(names: Iterable[str], **functions: Callable[..., Any]) -> None:
    """Let the modules *names* load at their first use, except those that are loaded or that Python lacks.

    The use of one of *functions*, which stand for those of the same names, loads nothing.
    """
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            module = module_from_spec(spec)
            module.__class__ = DeferredModule
            module.__dict__.update(functions, _is_deferred=True)
            sys.modules[name] = module


def get_annotations(annotated: Any, **options: Any) -> dict[str, Any]:
    """Return what ``inspect.get_annotations`` does; of a class, without ``inspect``.

    ``dataclasses`` of Python 3.12 and 3.13 calls that for each class.
    """
    if isinstance(annotated, type) and not options:
        return dict(annotated.__dict__.get("__annotations__") or {})  # noqa: RUF063  # that is what it does
    import inspect  # noqa: PLC0415  # deferred as well

    inspect.signature  # noqa: B018  # loads it, and with it the function that this one stands for
    return inspect.get_annotations(annotated, **options)  # novermin: from 3.12 on only
