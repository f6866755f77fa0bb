"""The grid security of a test run: created once for all workers, and copied by each test that uses it.

Generating the keys of an authority, its hosts, a user and a proxy takes half a second of CPU time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.testbed.middleware.gsi import Security
from monitor.testbed.middleware.programs import locate, missing

CLIENTS = ("globus-url-copy", "xrdcp")
# Debian's OpenSSL refuses keys below 2048 bits unless a configuration says otherwise.
OPENSSL_CONF = """\
openssl_conf = all
[all]
ssl_conf = tls
[tls]
system_default = tls_defaults
[tls_defaults]
CipherString = DEFAULT@SECLEVEL=1
"""


def copied_security(directory: Path) -> Security:
    """Copy the security of the run to *directory*: a test may change and extend its copy."""
    shutil.copytree(_original(), directory, dirs_exist_ok=True)
    return Security(directory)


def copied_proxy(security: Security) -> Path:
    """Return the valid proxy of the run in *security*, a copy."""
    return security.directory / "proxy"


@contextlib.contextmanager
def short_proxy(security: Security) -> Iterator[Path]:
    """Yield a proxy with a key of 1024 bits, accepted by servers that are started in the context.

    The clients on ``client_path`` accept it, too: transfers do not pass the environment on.

    Servers generate a key as long as the proxy's for every session. With 2048 bits this takes nine tenths of
    the CPU time of a small copy by GridFTP, and half of one by XRootD. The test of the emulated network
    copies with a long key.
    """
    configuration = security.directory / "openssl.cnf"
    configuration.write_text(OPENSSL_CONF, encoding="utf-8")
    clients = security.directory / "clients"
    clients.mkdir()
    for name in CLIENTS:
        if not missing([name]):
            client = clients / name
            client.write_text(f'#!/bin/sh\nOPENSSL_CONF={configuration} exec {locate(name)} "$@"\n')
            client.chmod(0o755)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENSSL_CONF", str(configuration))
        yield security.proxy("short-key", bits=1024)


def client_path(security: Security) -> str:
    """Return the PATH that begins with the clients of ``short_proxy``."""
    return f"{security.directory / 'clients'}:/usr/local/bin:/usr/bin:/bin"


def _original() -> Path:
    """Return the directory of the run's security; the first worker that needs it creates it."""
    run = Path(os.environ["GRIDCAST_VAR"]).parent
    directory = run / "security"
    with (run / "security.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not directory.exists():
            unfinished = run / "unfinished-security"
            shutil.rmtree(unfinished, ignore_errors=True)
            security = Security.create(unfinished)
            if not missing(["grid-proxy-init"]):
                security.proxy()
            unfinished.rename(directory)
    return directory
