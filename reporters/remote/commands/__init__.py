"""The commands of the reporter at a site: one file each, with a class ``Command``, found by its name."""

from __future__ import annotations

import argparse
from typing import Protocol

from reporters.registry import PluginRegistry


class RemoteCommand(Protocol):
    """A command of the reporter; *summary* is the line of help about the command."""

    summary: str

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add the options of the command to *parser*."""

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Do what *options* ask; return the exit status.

        Raises:
            UsageFault: the options ask for something impossible.
        """


_registry = PluginRegistry[type[RemoteCommand]](__name__, __path__, "Command", noun="command")
names, load = _registry.names, _registry.load
