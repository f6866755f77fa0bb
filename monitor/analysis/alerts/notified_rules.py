"""The alert rules that send messages, with the kinds of their channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.models import AlertRule

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True)
class NotifiedRule:
    """A rule; *channels*: their kinds, because addresses may be secret; *is_mailed*: to the user, too."""

    name: str
    title: str
    channels: Sequence[str]
    is_mailed: bool


def notified_rules(user: User) -> list[NotifiedRule]:
    """Return the enabled rules with channels that *user* may see, those that mail the user first."""
    rules = [
        NotifiedRule(
            rule.name,
            rule.title,
            sorted({channel["kind"] for channel in rule.notify}),
            is_mailed=bool(user.email)
            and any(user.email in channel.get("to", ()) for channel in rule.notify),
        )
        for rule in AlertRule.objects.visible_to(user).filter(enabled=True).exclude(notify=[])
    ]
    return sorted(rules, key=lambda rule: (not rule.is_mailed, rule.name))
