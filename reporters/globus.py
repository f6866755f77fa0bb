"""What Globus says when security or the network is in the way, in one line of ours.

Its clients end with 1 for nearly everything; what happened is in pages of text, innermost error last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from probes.base import ProbeFailed
from reporters.base import CannotConnect, CredentialUnfit
from reporters.credentials.lifetime import in_words


@dataclass(frozen=True)
class Complaint:
    """What is wrong: the kind of error, and in words; of a server ("it") where that is CannotConnect."""

    error: type[ProbeFailed]
    words: str


_LONGEST_CHARACTERS = 32768
# The first that fits counts: what is found within another's text comes before it.
_RULES = (
    (
        r"proxy credential: (?P<file>\S.*)\n\s+with subject: .*\n\s+expired (?P<minutes>\d+) minutes ago",
        Complaint(CredentialUnfit, "proxy {file} expired {ago} ago"),
    ),
    (
        r"^530 530-globus_xio: Server side credential failure\n(?:530-.*\n)*?"
        r"530-globus_credential: .*\n530-\s+with subject: .*\n530-\s+(has )?expired (?P<minutes>\d+) minutes",
        Complaint(CannotConnect, "its own certificate expired {ago} ago"),
    ),
    (
        r"Error reading proxy credential\n(?:globus_sysconfig: .*\n)*?globus_sysconfig: (?P<why>File .*)",
        Complaint(CredentialUnfit, "no valid proxy: {why}"),
    ),
    (r"Error reading proxy credential: (?P<why>.*)", Complaint(CredentialUnfit, "no valid proxy: {why}")),
    (r"Valid credentials could not be found", Complaint(CredentialUnfit, "no valid proxy")),
    (
        r"a valid trusted CA certificates directory\n(?:.*\n)*?globus_sysconfig: (?P<why>File .*)",
        Complaint(CredentialUnfit, "no trusted authorities: {why}"),
    ),
    (
        r"the remote entity \((?P<actual>.*?)\), and the expected name .* \((?P<expected>.*?)\) do not match",
        Complaint(CannotConnect, "it is {actual}, not {expected}"),
    ),
    (
        r"^530 530-globus_xio: Authentication Error\n(?:.*\n)*530-globus_gsi_callback_module: (?P<why>.*)",
        Complaint(CannotConnect, "it does not trust us: {why}"),
    ),
    (
        r"certificate verify failed\n(?:.*\n)*globus_gsi_callback_module: (?P<why>.*)",
        Complaint(CannotConnect, "its certificate is not trusted: {why}"),
    ),
    (
        r"530[ -]Login incorrect\. : (?:globus_gss_assist: )?(?P<why>.*)",
        Complaint(CannotConnect, "it does not let us in: {why}"),
    ),
    (r"^530[ -](?P<why>.*)", Complaint(CannotConnect, "it does not let us in: {why}")),
    (
        r"globus_libc_getaddrinfo failed\.\nglobus_common: (?P<why>.*)",
        Complaint(CannotConnect, "{why}"),
    ),
    (r"Unable to connect to .*\n.*System error in connect: (?P<why>.*)", Complaint(CannotConnect, "{why}")),
)


def complaint(text: str) -> Complaint | None:
    """What *text* complains of; None where it is not about security or the network."""
    latest = text[-_LONGEST_CHARACTERS:]  # some patterns take time by the square of it
    for pattern, says in _RULES:
        found = re.search(pattern, latest, re.MULTILINE)
        if found:
            words = says.words.format(**_values(found))
            return Complaint(says.error, words.rstrip(": "))  # a reason that was not given
    return None


def _values(found: re.Match[str]) -> dict[str, str]:
    values = {name: value.strip() for name, value in found.groupdict().items()}
    if "minutes" in values:
        values["ago"] = in_words(60.0 * float(values["minutes"]))
    return values
