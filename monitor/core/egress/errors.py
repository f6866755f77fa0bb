"""The errors of outgoing HTTP; ``monitor.core.egress`` has their tree."""

from __future__ import annotations


class EgressError(Exception):
    """Root of the errors of outgoing HTTP. No message has the path of the target: it may be secret."""


class TargetRefused(EgressError):
    pass


class Unanswered(EgressError):
    pass


class AnswerTooLarge(EgressError):
    pass
