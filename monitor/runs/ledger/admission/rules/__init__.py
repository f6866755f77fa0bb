"""The admission rules: one file each, with a function ``judge``. The folder is the registry."""

from __future__ import annotations

from monitor.runs.ledger.admission.base import Rule
from reporters.registry import PluginRegistry

_registry = PluginRegistry[Rule](__name__, __path__, "judge", noun="admission rule")
names, load_all = _registry.names, _registry.load_all


def in_order() -> list[Rule]:
    """Return all rules: maintenance first, then the others by name.

    If several rules skip a run, the first of these rules gives the reason. Maintenance is the first rule
    because a run skipped for maintenance is not the fault of the site.
    """
    rules = load_all().items()
    return [rule for _, rule in sorted(rules, key=lambda item: (item[0] != "maintenance", item[0]))]
