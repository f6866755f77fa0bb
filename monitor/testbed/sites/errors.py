"""What can go wrong with the local grid itself.

::

    TestbedError
    |-- AlreadyRunning    other sites are up in that directory          again, when they are down
    |-- NoAddress         the loopback addresses cannot be bound        for good
    |-- MissingProgram    the OpenSSH client is not installed           for good
    `-- DamagedState      a key or a description cannot be read         for good
"""

from __future__ import annotations


class TestbedError(Exception):
    """Root of what can go wrong with the local grid."""

    __test__ = False  # the name is no invitation to pytest


class AlreadyRunning(TestbedError):
    """Another process serves the sites of that directory."""


class NoAddress(TestbedError):
    """The loopback addresses cannot be bound."""


class MissingProgram(TestbedError):
    """A program that every site needs is not installed."""


class DamagedState(TestbedError):
    """A file of the directory cannot be read."""
