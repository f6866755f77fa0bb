"""Pseudonyms: the same text always gets the same one at a site, and another one at any other site."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Mapping

from reporters.remote.state_directory import StateDirectory, StateError

FILE = "pseudonyms.key"
HOST = "host"  # a kind
_SECRET_BYTES = 32
_DIGITS = 10
_SHORTEST_WORD = 2

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
# One pass over the text, the most specific first. Rather too much is replaced than too little. Each begins
# where a word begins, so that the time is linear.
_PATTERNS = re.compile(
    rf"""
      (?P<url>(?<!\w)\w+://[^\s'"]+)
    | (?P<quoted>(?<=')[~/][^'\n]*(?=') | (?<=")[~/][^"\n]*(?="))
    | (?P<login>(?<![\w.+-])[\w.+-]+@[\w.\[\]:-]+)
    | (?P<path>(?<![\w.~+-])[\w.~+-]*/[^\s'",;]*)
    | (?P<ipv6>(?<![\w:])[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f:.]*(?:%\w+)?)
    | (?P<ipv4>(?<![\w.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\w.]))
    | (?P<host>(?<![\w.-])(?:{_LABEL}\.)+[A-Za-z][A-Za-z0-9-]*(?![\w-]))
    """,
    re.VERBOSE | re.ASCII,
)
_KINDS = {
    "url": "address",
    "quoted": "path",
    "login": "user",
    "path": "path",
    "ipv6": "address",
    "ipv4": "address",
    "host": "host",
}


def secret_of(state: StateDirectory) -> bytes:
    """Return the secret of the pseudonyms of *state*; make it if it is missing.

    Raises:
        StateError: the secret can be neither read nor written.
    """
    secret = state.read(FILE)
    if secret is None:
        secret = os.urandom(_SECRET_BYTES)
        state.write(FILE, secret)
    if len(secret) != _SECRET_BYTES:
        raise StateError(f"cannot use {state.path / FILE}: expected {_SECRET_BYTES} bytes, got {len(secret)}")
    return secret


def told_hostname(disclosure: str, state: StateDirectory) -> str:
    """Return the name of this host as the server learns it: itself if *disclosure* is "full".

    Raises:
        StateError: the secret of the pseudonym can be neither read nor written.
    """
    name = os.uname().nodename
    return name if disclosure == "full" else Pseudonyms(secret_of(state), {}).of(HOST, name)


class Pseudonyms:
    """Replaces texts by pseudonyms such as ``host-1a2b3c4d5e``.

    Args:
        secret: without it, a pseudonym does not tell its text, not even to a reader that guesses.
        words: the kinds ("host" or "user") of words that are replaced wherever they occur.
    """

    def __init__(self, secret: bytes, words: Mapping[str, str]) -> None:
        self._secret = secret
        self._kinds = {word.lower(): kind for word, kind in words.items() if len(word) >= _SHORTEST_WORD}
        self._words = _any_of(self._kinds)

    def of(self, kind: str, text: str) -> str:
        """Return the pseudonym of *text*; upper and lower case are the same."""
        digest = hmac.new(self._secret, f"{kind}\0{text.lower()}".encode("utf-8", "replace"), hashlib.sha256)
        return f"{kind}-{digest.hexdigest()[:_DIGITS]}"

    def in_text(self, text: str) -> str:
        """Replace hosts, users, paths and addresses in *text*."""
        parts, end = [], 0
        for match in _PATTERNS.finditer(text):
            parts += [self.of_words(text[end : match.start()]), self._of_match(match)]
            end = match.end()
        return "".join([*parts, self.of_words(text[end:])])

    def of_words(self, text: str) -> str:
        """Replace the words given to the constructor, and nothing else."""
        if self._words is None:
            return text
        return self._words.sub(lambda match: self.of(self._kinds[match[0].lower()], match[0]), text)

    def _of_match(self, match: re.Match[str]) -> str:
        found = match[0].rstrip(".:)]")
        kind = self._kinds.get(found.lower(), _KINDS[match.lastgroup or "host"])
        return self.of(kind, found) + match[0][len(found) :]


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(words, key=len, reverse=True)
    if not longest_first:
        return None
    text = "|".join(re.escape(word) for word in longest_first)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{text})(?![A-Za-z0-9])", re.IGNORECASE)
