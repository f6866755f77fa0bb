"""Conditions of alert rules: one file each, with a class ``Condition``. The folder is the registry.

The name of the file is the key in a grid file: ``failures_in_row: 3``.
"""

from __future__ import annotations

from monitor.analysis.alerts.conditions.base import AlertCondition, UnknownCondition, check_threshold
from reporters.registry import PluginRegistry

_registry = PluginRegistry[type[AlertCondition]](
    __name__, __path__, "Condition", noun="alert condition", error=UnknownCondition, shared={"base"}
)
names, load = _registry.names, _registry.load


def condition(kind: str, threshold: int) -> AlertCondition:
    """Create the condition *kind* with *threshold*.

    Raises:
        UnknownCondition: there is no such kind.
        InvalidThreshold: the threshold is out of bounds.
    """
    plug_in = load(kind)
    check_threshold(kind, threshold, plug_in.least, plug_in.most, plug_in.unit)
    return plug_in(threshold)
