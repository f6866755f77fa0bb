"""Check the SSH key with which the OpenSSH client would log in to a host.

The checks need no connection and never prompt for a passphrase. They cover configured keys and their
certificates. Without configured keys, the check fails only if no default key is usable and no agent may have
keys. If the login may use Kerberos or hardware, nothing is checked unless *identity_file* is set.
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
from reporters.credentials.files import exists, read
from reporters.credentials.ssh_configuration import SshConfiguration, parse_configuration
from reporters.credentials.ssh_files import KeyFile, parse_key_file, parse_public_key, parse_validity

_LIMIT_SECONDS = 10.0
_OPEN_TO_OTHERS = 0o077
_NO_AGENT = 2  # exit status of ssh-add; 1 means an agent without keys


class SshKey(Credential):
    """The key that ssh, called with *arguments*, uses to log in to *resource*.

    If *identity_file* is set, ssh must use the key in this file. *now* returns the time in seconds since the
    epoch.
    """

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
        shown = _output(["ssh", "-G", *self._arguments])
        if shown is None:  # the login will report the error
            return
        config = parse_configuration(shown)
        if self._identity_file is None and config.has_other_ways:
            return
        named = self._named(config)
        if named:
            self._check_keys(named, SshAgent(config.agent))
        else:
            self._check_default_keys(config)
        self._check_certificates([*_paths(config, config.certificate_files), *_beside(named)], needed_seconds)

    def _named(self, config: SshConfiguration) -> list[Path]:
        """Return the files of the configured keys; at least one of them must be usable."""
        if self._identity_file is not None:
            return _paths(config, [self._identity_file])
        return _paths(config, config.identity_files) if config.has_only_configured_keys else []

    def _check_default_keys(self, config: SshConfiguration) -> None:
        agent = SshAgent(config.agent)
        files = [file for file in _paths(config, config.identity_files) if exists(file)]
        if files and agent.keys == frozenset():
            self._check_keys(files, agent)

    def _check_keys(self, files: Iterable[Path], agent: SshAgent) -> None:
        problems = [key_problem(file, agent) for file in files]
        if all(problems):
            raise CredentialUnfit(problems[0], resource=self._resource)

    def _check_certificates(self, files: Iterable[Path], needed_seconds: float) -> None:
        """Raise CredentialUnfit if there are *files* (SSH certificates) and none of them stays valid."""
        results = [self._certificate_error(file, needed_seconds) for file in files]
        errors = [error for error in results if error is not None]
        if errors and len(errors) == len(results):
            raise errors[0]

    def _certificate_error(self, certificate: Path, needed_seconds: float) -> CredentialUnfit | None:
        try:
            self._check_certificate(certificate, needed_seconds)
        except CredentialUnfit as error:
            return error
        return None

    def _check_certificate(self, file: Path, needed_seconds: float) -> None:
        name, now = f"SSH certificate {file}", self._now()
        if not exists(file):
            raise CredentialUnfit(f"no SSH certificate: {file} does not exist", resource=self._resource)
        shown = _output(["ssh-keygen", "-L", "-f", str(file)], TZ="UTC") or ""
        for lifetime in parse_validity(shown):
            lifetime.check(name, now=now, needed_seconds=needed_seconds, resource=self._resource)


class SshAgent:
    """The SSH agent behind *socket*, a path; an empty path means no agent."""

    def __init__(self, socket: str) -> None:
        self._socket = socket

    @cached_property
    def keys(self) -> frozenset[str] | None:
        """The public keys of the agent; empty without an agent, None if the agent does not answer."""
        if not self._socket:
            return frozenset()
        shown = _output(["ssh-add", "-L"], accepted=(0, 1, _NO_AGENT), SSH_AUTH_SOCK=self._socket)
        return None if shown is None else frozenset(filter(None, map(parse_public_key, shown.splitlines())))

    def may_have(self, public: str) -> bool:
        """Return whether the agent has, or may have, the private key of *public*.

        If *public* is empty, return whether the agent has or may have any key.
        """
        return self.keys is None or (public in self.keys if public else bool(self.keys))


def key_problem(file: Path, agent: SshAgent) -> str:
    """Return why ssh cannot use the key in *file*; empty if ssh can, or possibly can."""
    try:
        mode, data = read(file)
    except FileNotFoundError:
        public = _public(file)
        return "" if public and agent.may_have(public) else f"no SSH key: {file} does not exist"
    except OSError as error:
        return f"SSH key {file} cannot be read: {error.strerror}"
    key = parse_key_file(data)
    if key is None:
        return f"SSH key {file} cannot be used: it holds no key"
    if key.private and mode.st_uid == os.getuid() and mode.st_mode & _OPEN_TO_OTHERS:
        return (
            f"SSH key {file} is open to others (mode {stat.S_IMODE(mode.st_mode):04o}): ssh does not use it"
        )
    return _lock_problem(file, key, agent)


def _lock_problem(file: Path, key: KeyFile, agent: SshAgent) -> str:
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


def _paths(config: SshConfiguration, texts: Iterable[str]) -> list[Path]:
    return [path for path in map(config.path, texts) if path is not None]


def _beside(keys: Iterable[Path]) -> list[Path]:
    """Return the existing certificates ``KEY-cert.pub`` of *keys*; ssh finds them by this name."""
    certificates = (key.with_name(f"{key.name}-cert.pub") for key in keys)
    return [certificate for certificate in certificates if exists(certificate)]


def _output(argv: Sequence[str], *, accepted: Sequence[int] = (0,), **environment: str) -> str | None:
    """Return the stdout of *argv*; None if the program fails or its exit status is not in *accepted*.

    The program gets the environment of the reporter and the variables *environment*.
    """
    try:
        done = process.run(argv, timeout_seconds=_LIMIT_SECONDS, env={**os.environ, **environment})
    except process.ProcessError:
        return None
    return done.stdout if done.returncode in accepted else None
