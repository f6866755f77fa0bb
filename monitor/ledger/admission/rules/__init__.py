"""The admission rules: one file each, with a function ``judge``. The folder is the registry."""

from __future__ import annotations

from monitor.ledger.admission.base import Rule
from reporters.registry import PluginRegistry

_registry = PluginRegistry[Rule](__name__, __path__, "judge", noun="admission rule")
names, load_all = _registry.names, _registry.load_all


def in_order() -> list[Rule]:
    """Return every rule, by name, but maintenance first.

    If several rules skip a run, the first gives the reason, and maintenance excuses the site.
    """
    rules = load_all().items()
    return [rule for _, rule in sorted(rules, key=lambda item: (item[0] != "maintenance", item[0]))]
