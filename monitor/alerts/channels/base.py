"""What a channel is: told of an alert, it tells people, or says why it could not.

Errors::

    NotifierError
    |-- UnknownChannel     there is no such kind                                  for good
    |-- InvalidOptions     the options of a channel cannot be used                for good
    '-- NotDelivered       what was tried, and what came back                     again
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol

_SUBJECT_CHARACTERS = 200


class NotifierError(Exception):
    """Root of what goes wrong with a channel."""


class UnknownChannel(NotifierError):
    pass


class InvalidOptions(NotifierError):
    """*option* is the one at fault, if it is one."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(f"{option}: {message}" if option else message)
        self.message, self.option = message, option


class NotDelivered(NotifierError):
    pass


@dataclass(frozen=True)
class Message:
    """An alert was opened or closed (*event*).

    *id* is the same whenever the same message is sent again: it is delivered at least once. *url* is the page
    of alerts, empty where nobody has said where the web is.
    """

    id: str
    event: str
    rule: str
    series: str
    text: str
    since: datetime
    at: datetime
    url: str = ""

    @property
    def subject(self) -> str:
        """On one line, not too long."""
        said = "over" if self.event == "closed" else "alert"
        line = " ".join(f"[gridcast] {said}: {self.series}: {self.text}".split())
        return line if len(line) <= _SUBJECT_CHARACTERS else f"{line[:_SUBJECT_CHARACTERS]}..."

    @property
    def body(self) -> str:
        """As people read it, on some lines."""
        lines = [
            f"{self.series}: {self.text}",
            "",
            f"Rule    {self.rule}",
            f"Since   {self.since:%Y-%m-%d %H:%M:%S} UTC",
            f"{self.event.capitalize():8}{self.at:%Y-%m-%d %H:%M:%S} UTC",
        ]
        return "\n".join([*lines, *(["", self.url] if self.url else [])]) + "\n"


class Notifier(Protocol):
    """One channel. *option_types* are its options, each with its type as in ``reporters.options``.

    It is made often and kept nowhere. Secrets are no options: an option names a variable of the environment.
    """

    option_types: ClassVar[Mapping[str, str]]

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raise InvalidOptions where one is missing or makes no sense; their types have been checked."""

    def send(self, message: Message) -> None:
        """Return when it was taken. Raise NotDelivered; whoever calls limits the time, and tries again."""
