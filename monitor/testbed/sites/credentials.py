"""Keys of the sites and of the reporter, and the OpenSSH client's configuration for them."""

from __future__ import annotations

from pathlib import Path

import asyncssh

from monitor.testbed.errors import DamagedState
from monitor.testbed.sites.files import write_atomically
from monitor.testbed.sites.layout import USER, Layout, SiteLayout


def prepare_credentials(layout: Layout, port: int) -> None:
    """Generate missing keys; write all files that depend on keys, addresses and *port*."""
    clients = [_kept_key(layout.reporter_key, "reporter")]
    hosts = {}
    for site in layout.sites:
        clients.append(_kept_key(site.key, site.name))
        hosts[site.name] = _kept_key(site.host_key, site.name)
    all_clients = "".join(map(_public_line, clients))
    for site in layout.sites:
        write_atomically(site.authorized_keys, all_clients, mode=0o600)
        write_atomically(site.ssh_config, ssh_config_text(layout, port, site))
    host_keys = "".join(f"{name} {_public_line(key)}" for name, key in hosts.items())
    write_atomically(layout.known_hosts, host_keys)
    write_atomically(layout.ssh_config, ssh_config_text(layout, port, None))


def load_key(path: Path) -> asyncssh.SSHKey:
    """Read a private key. Raises DamagedState with the name of the file."""
    try:
        return asyncssh.read_private_key(path)
    except (asyncssh.KeyImportError, UnicodeDecodeError) as error:
        raise DamagedState(
            f"cannot parse the key {path}: {error}; remove the file to get a new one"
        ) from error


def _kept_key(path: Path, comment: str) -> asyncssh.SSHKey:
    if path.exists():
        return load_key(path)
    key = asyncssh.generate_private_key("ssh-ed25519", comment=comment)
    write_atomically(path, key.export_private_key().decode(), mode=0o600)
    write_atomically(path.with_name(f"{path.name}.pub"), _public_line(key))
    return key


def _public_line(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode().rstrip("\n") + "\n"


def ssh_config_text(layout: Layout, port: int, caller: SiteLayout | None) -> str:
    """Return the ssh_config with which the site *caller* reaches every site by name.

    *caller* is None for clients outside the grid. A site connects from its own address, so that other sites
    recognise it.
    """
    key = caller.key if caller else layout.reporter_key
    hosts = [
        f"Host {site.name}\n    HostName {site.address}\n    HostKeyAlias {site.name}"
        for site in layout.sites
    ]
    common = [
        f"Host {' '.join(layout.names)}",
        f"Port {port}",
        f"User {USER}",
        f"IdentityFile {_quoted(key)}",
        "IdentitiesOnly yes",
        f"UserKnownHostsFile {_quoted(layout.known_hosts)}",
        "GlobalKnownHostsFile /dev/null",
        "StrictHostKeyChecking yes",
        "UpdateHostKeys no",
        "SendEnv LC_*",
    ]
    if caller:
        common += [f"BindAddress {caller.address}", "BatchMode yes"]
    return "\n".join([*hosts, "\n    ".join(common)]) + "\n"


def _quoted(path: Path) -> str:
    """Quote *path* for an ssh_config, where %% is an escaped %."""
    return '"{}"'.format(str(path).replace("%", "%%"))
