"""The channels of alert rules whose receiver has answered 410 Gone: they get no more messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from monitor.analysis.webhooks.receivers import answers_of_gone
from monitor.models import AlertRule


class DisabledChannel(NamedTuple):
    """The channel at *number*, from 0, of the rule named *rule*; *answer* is that of its receiver."""

    rule: str
    number: int
    answer: str

    @property
    def channel(self) -> str:
        return f"channel {self.number + 1}"


def disabled_channels(rules: Iterable[AlertRule]) -> list[DisabledChannel]:
    """Return the disabled channels of *rules*."""
    urls = [
        (rule.name, number, str(channel["url"]))
        for rule in rules
        for number, channel in enumerate(rule.notify)
        if "url" in channel
    ]
    answers = answers_of_gone(url for _, _, url in urls) if urls else {}
    return [DisabledChannel(name, number, answers[url]) for name, number, url in urls if url in answers]
