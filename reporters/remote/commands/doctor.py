"""``doctor``: check what the reporter needs on this host, and report what is missing."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reporters import host, scratch, site_tools
from reporters.remote import services, signing
from reporters.remote.options import add_state, state_path
from reporters.remote.policy.file import read_policy
from reporters.remote.service import Launch
from reporters.remote.signing.base import SigningUnavailable
from reporters.remote.state_directory import SITE_POLICY
from reporters.usage import format_bytes

_NEEDED_FREE_BYTES = 100_000_000


@dataclass(frozen=True)
class HostCheck:
    """The result of one check; *is_needed* if the reporter cannot work without it."""

    name: str
    is_fine: bool
    text: str
    is_needed: bool = True


class Command:
    summary = "Check what the reporter needs on this host."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        add_state(parser)
        parser.add_argument(
            "--scratch", default="", help="directory for runs (default: that of temporary files)"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        checks = list(_checks(state_path(options), options.scratch or tempfile.gettempdir()))
        for check in checks:
            mark = "ok" if check.is_fine else "MISSING" if check.is_needed else "warning"
            sys.stdout.write(f"{mark:<8} {check.name:<14} {check.text}\n")
        return 0 if all(check.is_fine or not check.is_needed for check in checks) else 1


def _checks(state: Path, directory: str) -> Iterator[HostCheck]:
    yield HostCheck("Python", True, f"{platform.python_version()} at {sys.executable}")
    yield _tls()
    missing = [tool for tool in site_tools.NEEDED if shutil.which(tool) is None]
    yield HostCheck("programs", not missing, f"not found: {', '.join(missing)}" if missing else "all found")
    yield _scratch(directory)
    compiler = shutil.which("cc")
    yield HostCheck(
        "compiler", compiler is not None, compiler or "no cc: probes that compile fail", is_needed=False
    )
    yield _key_pair()
    launch = Launch(state)
    loaded = map(services.load, services.by_preference())
    kinds = [kind for kind in loaded if not (kind(launch).unavailable() or kind(launch).doubt())]
    starters = ", ".join(kind.summary for kind in kinds)
    yield HostCheck(
        "start", bool(starters), starters or "no way to start it after a boot; see `install`", is_needed=False
    )
    yield _policy(state / SITE_POLICY)
    yield _clock()


def _tls() -> HostCheck:
    try:
        ssl = importlib.import_module("ssl")  # missing from a Python that was built without OpenSSL
    except ImportError as error:
        return HostCheck("TLS", False, f"this Python has no TLS: {error}")
    paths = ssl.get_default_verify_paths()
    authorities = paths.cafile or paths.capath
    found = f"authorities in {authorities}" if authorities else "no certificates of authorities"
    return HostCheck("TLS", authorities is not None, f"{ssl.OPENSSL_VERSION}; {found}", is_needed=False)


def _key_pair() -> HostCheck:
    try:
        method, _ = signing.choose()
    except SigningUnavailable as error:
        return HostCheck("key pair", False, str(error))
    return HostCheck("key pair", True, f"by the method {method}")


def _scratch(directory: str) -> HostCheck:
    try:
        with tempfile.NamedTemporaryFile(dir=directory):
            free = shutil.disk_usage(directory).free
    except OSError as error:
        return HostCheck("scratch", False, f"cannot write to {directory}: {error.strerror}")
    reason = scratch.unsafe_reason(os.path.abspath(directory))  # noqa: PTH100  # used as text
    if reason:
        return HostCheck("scratch", False, reason)
    return HostCheck("scratch", free >= _NEEDED_FREE_BYTES, f"{format_bytes(free)} free in {directory}")


def _policy(file: Path) -> HostCheck:
    policy = read_policy(file)
    if policy.status == "absent":
        return HostCheck("policy", True, f"absent ({file}): whatever the server assigns may run")
    if policy.status == "unreadable":
        return HostCheck("policy", False, f"unreadable, so nothing runs: {policy.error}")
    rules = ", ".join(policy.rules) or "no rules"
    return HostCheck(
        "policy",
        True,
        f"in force: {rules}; disclosure {policy.disclosure}, approval {policy.approval}; "
        f"sha256 {policy.sha256[:12]}",
    )


def _clock() -> HostCheck:
    is_synchronised = host.clock_is_synchronised()
    text = (
        "synchronised"
        if is_synchronised
        else "the kernel does not report a synchronised clock; slots start by this clock, so let NTP set it"
    )
    return HostCheck("clock", is_synchronised, text, is_needed=False)
