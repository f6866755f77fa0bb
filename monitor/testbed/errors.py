"""What can go wrong with a test-bed itself.

::

    TestbedError
    |-- AlreadyRunning    other sites are up in that directory          again, when they are down
    |-- NoAddress         the loopback addresses cannot be bound        for good
    |-- MissingProgram    a program is not installed                    for good
    |-- NotServing        a server did not come up                      again
    `-- DamagedState      a key or a description cannot be read         for good
"""

from __future__ import annotations


class TestbedError(Exception):
    """Root of what can go wrong with a test-bed."""

    __test__ = False  # the name is no invitation to pytest


class AlreadyRunning(TestbedError):
    """Another process serves the sites of that directory."""


class NoAddress(TestbedError):
    """The loopback addresses cannot be bound."""


class MissingProgram(TestbedError):
    """A program is not installed."""


class NotServing(TestbedError):
    """A server did not come up."""


class DamagedState(TestbedError):
    """A file of the directory cannot be read."""
