"""Errors of the test-beds themselves; the last column says whether a retry can help.

::

    TestbedError
    |-- AlreadyRunning    a grid runs in the given directory            yes, after its end
    |-- NoAddress         the loopback addresses cannot be bound        no
    |-- MissingProgram    a program is not installed                    no
    |-- NotServing        a server did not come up                      yes
    |-- DamagedState      a key or a description cannot be parsed       no
    |-- BadLinkTable      a line of a link table is wrong (wan)         no
    |-- NoNetwork         all networks of the test-bed are used (wan)   yes
    |-- CannotRunHere     rights or programs are missing (wan)          no
    `-- UnknownStorage    there is no storage profile of this name      no
"""

from __future__ import annotations


class TestbedError(Exception):
    """Root of the errors of test-beds."""

    __test__ = False  # pytest must not collect it because of its name


class AlreadyRunning(TestbedError):
    """Another process runs a grid in the given directory."""


class NoAddress(TestbedError):
    """The loopback addresses cannot be bound."""


class MissingProgram(TestbedError):
    """A program is not installed."""


class NotServing(TestbedError):
    """A server did not come up."""


class DamagedState(TestbedError):
    """A file in the directory of the grid cannot be parsed."""


class UnknownStorage(TestbedError, LookupError):
    """There is no storage profile of this name."""
