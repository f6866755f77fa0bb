"""The changes of definitions, as the audit record lists them."""

from __future__ import annotations

from dataclasses import replace

from monitor.analysis.alerts.concealed_urls import concealed_channels
from monitor.analysis.webhooks.define import WebhookDefinition, noted
from monitor.depot.access.audit_trail import note
from monitor.operations.gridfile.definition import AlertDefinition, Definition
from monitor.operations.gridfile.planning import ABSENT, Change
from monitor.operations.gridfile.problems import NOUNS


def note_change(change: Change) -> None:
    """Note the values of *change* that differ, by key.

    The path of the URL of a webhook or of a channel may be a secret.
    """
    noun, name = NOUNS[change.noun], change.name
    if isinstance(change.before or change.after, WebhookDefinition):
        ends = (change.before, change.after)
        before, after = (noted(end) if isinstance(end, WebhookDefinition) else None for end in ends)
        note(noun, name, before=before, after=after)
        return
    rows = list(Change(change.noun, concealed(change.before), concealed(change.after)).values())
    note(
        noun,
        name,
        before={key: old for key, old, _ in rows if old is not ABSENT} if change.before else None,
        after={key: new for key, _, new in rows if new is not ABSENT} if change.after else None,
    )


def concealed(definition: Definition | None) -> Definition | None:
    """Return *definition* without the paths of the URLs of its channels."""
    if isinstance(definition, AlertDefinition):
        return replace(definition, notify=concealed_channels(definition.notify))
    return definition
