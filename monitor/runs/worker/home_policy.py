"""The site policy of the home reporter: what the administrator of this host lets the server's users do here.

It is the file that agents read at sites (docs/site-policy.md), in the state directory of the worker. Rules
that need the accounts of an agent do not apply here: a file with one of them refuses every run.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from reporters.remote.agent import gate
from reporters.remote.policy.file import PolicyFile
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.site_policy import FULL, PREFIX, SitePolicy

if TYPE_CHECKING:
    from reporters.config import Assignment

FILE = "site-policy.json"
_OF_AGENTS = ("caps", "requests")


def refusal(assignment: Assignment, now: datetime) -> str:
    """Return why the policy refuses the run *assignment* now; empty if it allows it."""
    policy = _file(settings.VAR_DIR / FILE).current()
    if reason := unsuitable(policy):
        return f"{PREFIX}{reason}"
    if not policy.rules and policy.status != "unreadable":
        return ""
    return policy.refusal(assignment, Situation(now, probe_sha256=gate.probe_sha256(assignment.probe)))


def unsuitable(policy: SitePolicy) -> str:
    """Return which part of *policy* only agents can follow; empty if there is none."""
    if policy.status != "in_force":
        return ""
    if extra := [name for name in _OF_AGENTS if name in policy.rules]:
        return f"{FILE} of the home reporter: {', '.join(extra)} is a rule for agents at sites"
    if policy.disclosure != FULL or policy.approval != "auto":
        return f"{FILE} of the home reporter: disclosure and approval are for agents at sites"
    return ""


@cache
def _file(path: Path) -> PolicyFile:
    return PolicyFile(path)
