"""Errors of the reporter at a site."""

from __future__ import annotations


class UsageFault(Exception):
    """The command cannot do what its options request; the message has the reason and a remedy."""
