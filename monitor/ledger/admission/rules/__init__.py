"""The admission rules: one file each, with a function ``judge``. The folder is the registry."""

from __future__ import annotations

from monitor.ledger.admission.base import Rule
from reporters.registry import PluginRegistry

_registry = PluginRegistry[Rule](__name__, __path__, "judge", noun="admission rule")
names, load_all = _registry.names, _registry.load_all
