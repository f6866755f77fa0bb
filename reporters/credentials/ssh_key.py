"""The SSH key with which the OpenSSH client would log in somewhere.

Judged is what can be told without the host: keys that are named, and certificates for them; keys that ssh
would try by itself only if none of them can be used. Where an agent may have others, or Kerberos or hardware
may let us in, nothing is said: the login will tell. Nobody is ever asked for a passphrase.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

from reporters import process
from reporters.base import Credential, CredentialUnfit
from reporters.credentials.files import is_there, read
from reporters.credentials.ssh_configuration import Configuration, parse_configuration
from reporters.credentials.ssh_files import KeyFile, parse_key_file, parse_public_key, parse_validity

_LIMIT_SECONDS = 10.0
_OPEN_TO_OTHERS = 0o077
_NO_AGENT = 2  # exit status of ssh-add; 1 is an agent without keys


class SshKey(Credential):
    """The key that ``ssh *arguments`` would use for *resource*; *identity_file* is one that it must use."""

    def __init__(
        self,
        resource: str,
        arguments: Sequence[str],
        *,
        identity_file: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._resource = resource
        self._arguments = arguments
        self._identity_file = identity_file
        self._now = now

    def check(self, *, needed_seconds: float) -> None:
        shown = _said(["ssh", "-G", *self._arguments])
        if shown is None:  # ssh will say why when it logs in
            return
        config = parse_configuration(shown)
        if self._identity_file is None and config.has_other_ways:
            return
        named = self._named(config)
        if named:
            self._check_keys(named, Agent(config.agent))
        else:
            self._check_usual_keys(config)
        self._check_certificates([*_paths(config, config.certificate_files), *_beside(named)], needed_seconds)

    def _named(self, config: Configuration) -> list[Path]:
        """The keys of which one must be usable, whatever else there is."""
        if self._identity_file is not None:
            return _paths(config, [self._identity_file])
        return _paths(config, config.identity_files) if config.names_keys else []

    def _check_usual_keys(self, config: Configuration) -> None:
        agent = Agent(config.agent)
        files = [file for file in _paths(config, config.identity_files) if is_there(file)]
        if files and agent.keys == frozenset():
            self._check_keys(files, agent)

    def _check_keys(self, files: Iterable[Path], agent: Agent) -> None:
        whys = [why_unusable(file, agent) for file in files]
        if all(whys):
            raise CredentialUnfit(whys[0], resource=self._resource)

    def _check_certificates(self, files: Iterable[Path], needed_seconds: float) -> None:
        """One of the certificates must be fit, if there are any."""
        verdicts = [self._verdict(file, needed_seconds) for file in files]
        unfit = [verdict for verdict in verdicts if verdict is not None]
        if unfit and len(unfit) == len(verdicts):
            raise unfit[0]

    def _verdict(self, certificate: Path, needed_seconds: float) -> CredentialUnfit | None:
        try:
            self._check_certificate(certificate, needed_seconds)
        except CredentialUnfit as error:
            return error
        return None

    def _check_certificate(self, file: Path, needed_seconds: float) -> None:
        what, now = f"SSH certificate {file}", self._now()
        if not is_there(file):
            raise CredentialUnfit(f"no SSH certificate: {file} does not exist", resource=self._resource)
        shown = _said(["ssh-keygen", "-L", "-f", str(file)], TZ="UTC") or ""
        for lifetime in parse_validity(shown):
            lifetime.check(what, now=now, needed_seconds=needed_seconds, resource=self._resource)


class Agent:
    """An agent that may have keys. *socket* is empty where there is none."""

    def __init__(self, socket: str) -> None:
        self._socket = socket

    @cached_property
    def keys(self) -> frozenset[str] | None:
        """Its public keys; None where they cannot be told."""
        if not self._socket:
            return frozenset()
        shown = _said(["ssh-add", "-L"], but=(1, _NO_AGENT), SSH_AUTH_SOCK=self._socket)
        return None if shown is None else frozenset(filter(None, map(parse_public_key, shown.splitlines())))

    def may_have(self, public: str) -> bool:
        """Whether it has, or may have, the private half of *public*; empty is any key."""
        return self.keys is None or (public in self.keys if public else bool(self.keys))


def why_unusable(file: Path, agent: Agent) -> str:
    """Why ssh cannot use the key in *file*, in words; empty where it can, or may."""
    try:
        mode, data = read(file)
    except FileNotFoundError:
        known = _public(file)
        return "" if known and agent.may_have(known) else f"no SSH key: {file} does not exist"
    except OSError as error:
        return f"SSH key {file} cannot be read: {error.strerror}"
    key = parse_key_file(data)
    if key is None:
        return f"SSH key {file} cannot be used: it holds no key"
    if key.private and mode.st_uid == os.getuid() and mode.st_mode & _OPEN_TO_OTHERS:
        return (
            f"SSH key {file} is open to others (mode {stat.S_IMODE(mode.st_mode):04o}): ssh does not use it"
        )
    return _why_locked(file, key, agent)


def _why_locked(file: Path, key: KeyFile, agent: Agent) -> str:
    if key.private and not key.encrypted:
        return ""
    if agent.may_have(key.public or _public(file)):
        return ""
    if key.private:
        return f"SSH key {file} needs a passphrase and no agent has it"
    return f"SSH key {file} is a public key and no agent has its private half"


def _public(file: Path) -> str:
    try:
        return parse_public_key(read(file.with_name(f"{file.name}.pub"))[1].decode("utf-8", "replace"))
    except OSError:
        return ""


def _paths(config: Configuration, texts: Iterable[str]) -> list[Path]:
    return [path for path in map(config.path, texts) if path is not None]


def _beside(keys: Iterable[Path]) -> list[Path]:
    """The certificates that ssh finds by the names of *keys*."""
    certificates = (key.with_name(f"{key.name}-cert.pub") for key in keys)
    return [certificate for certificate in certificates if is_there(certificate)]


def _said(argv: Sequence[str], *, but: Sequence[int] = (), **environment: str) -> str | None:
    """What *argv* prints; None where it cannot be run, or ends badly *but* for these statuses."""
    try:
        done = process.run(argv, timeout_seconds=_LIMIT_SECONDS, env={**os.environ, **environment})
    except process.ProcessError:
        return None
    return done.stdout if done.returncode in (0, *but) else None
