"""The contract of a channel: deliver a message about an alert, or raise the reason for failing.

Errors::

    NotifierError
    |-- UnknownChannel     the folder has no channel of that name                 permanent
    |-- InvalidOptions     the options of the channel are unusable                permanent
    '-- NotDelivered       the attempt failed; the message says how               temporary
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol

VARIABLE = "_variable"  # the end of the name of an option with the name of an environment variable
_SUBJECT_CHARACTERS = 200
_TIMES = {"repeated": "Opened"}  # what the time of a message is


class NotifierError(Exception):
    """Root of the errors of channels."""


class UnknownChannel(NotifierError):
    pass


class InvalidOptions(NotifierError):
    """The options of a channel are unusable.

    *option* is the name of the invalid option; empty if the message already contains the name.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(f"{option}: {message}" if option else message)
        self.message, self.option = message, option


class NotDelivered(NotifierError):
    """The attempt failed.

    Attributes:
        retry_seconds: for how long the receiver asks to be left alone; None if it does not ask.
        is_gone: whether the receiver says that it never wants another message.
    """

    def __init__(self, message: str, *, retry_seconds: float | None = None, is_gone: bool = False) -> None:
        super().__init__(message)
        self.retry_seconds, self.is_gone = retry_seconds, is_gone


@dataclass(frozen=True)
class Message:
    """The message that an alert of a series or of a reporter was opened, is still open, or was closed.

    *event* is "opened", "repeated" or "closed". One of *series* and *reporter* is empty; both are, if the
    monitor itself is suspected. A message may be delivered more than once, each time with the same *id*.

    Attributes:
        url: the address of the page of the incident, or of alerts; empty unless GRIDCAST_URL is set.
        incident, cause: the number of the incident, and what and where it is.
        open_alerts: how many alerts of the incident are open and use the channel.
        severity: of the rule; empty in a message that the monitor is suspected.
    """

    id: str
    event: str
    rule: str
    series: str
    text: str
    since: datetime
    at: datetime
    url: str = ""
    reporter: str = ""
    incident: int | None = None
    cause: str = ""
    open_alerts: int = 0
    severity: str = ""

    @property
    def watched(self) -> str:
        """The series, the reporter, or the cause."""
        return self.series or (f"reporter {self.reporter}" if self.reporter else self.cause)

    @property
    def subject(self) -> str:
        """One line of bounded length."""
        label = {"closed": "resolved", "repeated": "still open"}.get(self.event, "alert")
        if self.severity == "critical" and self.event != "closed":
            label = f"critical: {label}"
        others = f" (and {self.open_alerts - 1:,} more)" if self.open_alerts > 1 else ""
        line = " ".join(f"[gridcast] {label}: {self.watched}{others}: {self.text}".split())
        return line if len(line) <= _SUBJECT_CHARACTERS else f"{line[:_SUBJECT_CHARACTERS]}..."

    @property
    def body(self) -> str:
        """The text of a mail."""
        lines = [
            f"{self.watched}: {self.text}",
            "",
            *([f"Rule    {self.rule}"] if self.rule else []),
            *([f"Severity {self.severity}"] if self.severity else []),
            *([f"Cause   {self.cause} (incident {self.incident})"] if self.incident else []),
            *([f"Alerts  {self.open_alerts:,} open"] if self.open_alerts > 1 else []),
            f"Since   {self.since:%Y-%m-%d %H:%M:%S} UTC",
            f"{_TIMES.get(self.event, self.event.capitalize()):8}{self.at:%Y-%m-%d %H:%M:%S} UTC",
        ]
        return "\n".join([*lines, *(["", self.url] if self.url else [])]) + "\n"


class Notifier(Protocol):
    """A channel that delivers messages; an instance is created for each message.

    *option_types* maps the name of each option to its type, as in ``reporters.options``. A secret is never an
    option: an option whose name ends with ``_variable`` contains the name of an environment variable with the
    secret. Only such an option names one: it is checked that the secret belongs to the author of the rule.
    """

    option_types: ClassVar[Mapping[str, str]]

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raise InvalidOptions if an option is missing or out of range; the types have been checked."""

    def send(self, message: Message) -> None:
        """Return when the receiver has accepted *message*; the caller retries after an error.

        Raises:
            NotDelivered: the receiver has not accepted *message*.
        """
