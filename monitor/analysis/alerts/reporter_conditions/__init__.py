"""Conditions that judge a remote reporter: one file each, with a class ``Condition``.

The folder is the registry. A name is the key in a grid file, so no condition of series has the same name.
"""

from __future__ import annotations

from monitor.analysis.alerts.conditions.base import UnknownCondition, check_threshold
from monitor.analysis.alerts.reporter_conditions.base import ReporterCondition
from reporters.registry import PluginRegistry

_registry = PluginRegistry[type[ReporterCondition]](
    __name__, __path__, "Condition", noun="alert condition", error=UnknownCondition, shared={"base"}
)
names, load = _registry.names, _registry.load


def condition(kind: str, threshold: int) -> ReporterCondition:
    """Create the condition *kind* with *threshold*.

    Raises:
        UnknownCondition: there is no such kind.
        InvalidThreshold: the threshold is out of bounds.
    """
    plug_in = load(kind)
    check_threshold(kind, threshold, plug_in.least, plug_in.most, plug_in.unit)
    return plug_in(threshold)
