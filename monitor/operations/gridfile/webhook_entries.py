"""The webhooks of a grid file: their entries, their definitions, and the checks of several values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from monitor.analysis.webhooks.define import WebhookDefinition, problems
from monitor.core.yamlfile.entry import Entry
from monitor.core.yamlfile.problems import Fault, quoted, suggestion

_RESTRICTIONS = {"suites": "suite", "sites": "site"}


class WebhookEntry(Entry):
    """A receiver of signed messages about runs and the states of sites (docs/webhooks.md)."""

    url: str = Field(
        max_length=2000,
        description="Where messages are posted: http or https, without a password.",
        examples=["https://hooks.example.org/gridcast"],
    )
    events: Annotated[list[Literal["run.ended", "site.down", "site.up"]], Field(min_length=1)] = Field(
        description="Types of messages that it receives.", examples=[["site.down", "site.up"]]
    )
    secret_variable: str = Field(
        "",
        max_length=100,
        description="Environment variable of the control worker with the secrets that sign messages, "
        "`GRIDCAST_WEBHOOK_...`; default: messages are not signed.",
    )
    suites: list[str] = Field([], description="Only runs of these suites; default: all.")
    sites: list[str] = Field([], description="Only runs and states of these sites; default: all.")
    enabled: bool = Field(True, description="Whether messages are enqueued and sent.")


def webhook_definition(name: str, entry: WebhookEntry) -> WebhookDefinition:
    values = entry.model_dump()
    names = {key: tuple(sorted(set(values[key]))) for key in ("events", *_RESTRICTIONS)}
    return WebhookDefinition(name, **{**values, **names})


def faults(
    webhooks: Mapping[str, WebhookEntry], names: Mapping[str, Collection[str] | None]
) -> Iterator[Fault]:
    """Yield each fault, with its path in the section.

    *names* has the existing suites and sites; None instead of names disables the check.
    """
    for name, entry in webhooks.items():
        for key, message in problems(webhook_definition(name, entry)):
            yield (name, key), message
        for key, singular in _RESTRICTIONS.items():
            existing = names[key]
            for i, each in enumerate(getattr(entry, key)):
                if existing is not None and each not in existing:
                    yield (
                        (name, key, i),
                        f"there is no {singular} {quoted(each)}{suggestion(each, existing)}",
                    )
