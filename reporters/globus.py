"""Explain the security and network errors of Globus clients in one line.

The clients exit with status 1 for nearly every error; they print the causes as a long text, the innermost
cause last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from probes.base import ProbeFailed
from reporters.base import CannotConnect, CredentialUnfit
from reporters.credentials.lifetime import format_duration


@dataclass(frozen=True)
class GlobusError:
    """The class of an error and its description in one line.

    The description of a CannotConnect completes a sentence about the server and calls the server "it".
    """

    error: type[ProbeFailed]
    text: str


_LONGEST_CHARACTERS = 32768
# The first match counts; specific patterns come before those that match their text, too.
_RULES = (
    (
        r"proxy credential: (?P<file>\S.*)\n\s+with subject: .*\n\s+expired (?P<minutes>\d+) minutes ago",
        GlobusError(CredentialUnfit, "proxy {file} expired {ago} ago"),
    ),
    (
        r"^530 530-globus_xio: Server side credential failure\n(?:530-.*\n)*?"
        r"530-globus_credential: .*\n530-\s+with subject: .*\n530-\s+(has )?expired (?P<minutes>\d+) minutes",
        GlobusError(CannotConnect, "its own certificate expired {ago} ago"),
    ),
    (
        r"Error reading proxy credential\n(?:globus_sysconfig: .*\n)*?globus_sysconfig: (?P<why>File .*)",
        GlobusError(CredentialUnfit, "no valid proxy: {why}"),
    ),
    (r"Error reading proxy credential: (?P<why>.*)", GlobusError(CredentialUnfit, "no valid proxy: {why}")),
    (r"Valid credentials could not be found", GlobusError(CredentialUnfit, "no valid proxy")),
    (
        r"a valid trusted CA certificates directory\n(?:.*\n)*?globus_sysconfig: (?P<why>File .*)",
        GlobusError(CredentialUnfit, "no trusted authorities: {why}"),
    ),
    (
        r"the remote entity \((?P<actual>.*?)\), and the expected name .* \((?P<expected>.*?)\) do not match",
        GlobusError(CannotConnect, "it is {actual}, not {expected}"),
    ),
    (
        r"^530 530-globus_xio: Authentication Error\n(?:.*\n)*530-globus_gsi_callback_module: (?P<why>.*)",
        GlobusError(CannotConnect, "it does not trust us: {why}"),
    ),
    (
        r"certificate verify failed\n(?:.*\n)*globus_gsi_callback_module: (?P<why>.*)",
        GlobusError(CannotConnect, "its certificate is not trusted: {why}"),
    ),
    (
        r"530[ -]Login incorrect\. : (?:globus_gss_assist: )?(?P<why>.*)",
        GlobusError(CannotConnect, "it does not let us in: {why}"),
    ),
    (r"^530[ -](?P<why>.*)", GlobusError(CannotConnect, "it does not let us in: {why}")),
    (
        r"globus_libc_getaddrinfo failed\.\nglobus_common: (?P<why>.*)",
        GlobusError(CannotConnect, "{why}"),
    ),
    (r"Unable to connect to .*\n.*System error in connect: (?P<why>.*)", GlobusError(CannotConnect, "{why}")),
)


def explain(text: str) -> GlobusError | None:
    """Return the error in *text*; None if the error is not about security or the network."""
    latest = text[-_LONGEST_CHARACTERS:]  # some patterns take quadratic time
    for pattern, rule_error in _RULES:
        match = re.search(pattern, latest, re.MULTILINE)
        if match:
            description = rule_error.text.format(**_values(match))
            return GlobusError(rule_error.error, description.rstrip(": "))  # the reason may be missing
    return None


def _values(match: re.Match[str]) -> dict[str, str]:
    values = {name: value.strip() for name, value in match.groupdict().items()}
    if "minutes" in values:
        values["ago"] = format_duration(60.0 * float(values["minutes"]))
    return values
