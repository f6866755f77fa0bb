"""Real OpenSSH servers that refuse something, and what clients need to be refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from monitor.testbed.middleware.openssh import SshClients, SshdOptions, make_key, public, sshd
from monitor.testbed.middleware.programs import locate
from monitor.testbed.middleware.server_process import free_port, listens, serving

_SERVERS = {
    "site": SshdOptions(),
    "jump": SshdOptions(),
    "closed": SshdOptions(lines=["AllowUsers prober-of-another-site"]),
    "impatient": SshdOptions(lines=["MaxAuthTries 1"]),
    "full": SshdOptions(sessions=0),
    "mover": SshdOptions(sftp_only=True),
    "noisy": SshdOptions(lines=['ForceCommand echo Welcome to the grid; eval "$SSH_ORIGINAL_COMMAND"']),
    "forced": SshdOptions(lines=["ForceCommand echo only backups are allowed >&2; exit 3"]),
    "unforwarded": SshdOptions(lines=["DisableForwarding yes"]),
    "modern": SshdOptions(
        lines=["KexAlgorithms sntrup761x25519-sha512@openssh.com", "Ciphers aes256-gcm@openssh.com"]
    ),
    "certified": SshdOptions(authority=True),
    "password": SshdOptions(lines=["PubkeyAuthentication no", "AuthenticationMethods any"]),
}
_RSYNCD = """\
pid file = {root}/rsyncd.pid
log file = {root}/rsyncd.log
use chroot = no
[public]
path = {root}/public
[read-only]
path = {root}/public
read only = yes
[write-only]
path = {root}/public
write only = yes
[missing]
path = {root}/no-such-directory
[secret]
path = {root}/public
auth users = prober
secrets file = {root}/no-secrets
[closed]
path = {root}/public
hosts allow = 192.0.2.1
[unlisted]
path = {root}/public
refuse options = delete compress
[full]
path = {root}/public
max connections = -1
"""


@contextlib.contextmanager
def ssh_servers(directory: Path) -> Iterator[dict[str, str]]:
    """Yield variables: CONFIG reaches the servers by name, KEYS has unusable keys, RSYNCD is an URL."""
    clients = SshClients(directory / "ssh")
    with contextlib.ExitStack() as stack:
        for name, options in _SERVERS.items():
            stack.enter_context(sshd(name, clients, options))
        yield {
            "CONFIG": str(clients.config_file),
            "KNOWN_HOSTS": str(clients.known_hosts),
            "KEYS": str(_keys(clients, directory / "keys")),
            "RSYNCD": stack.enter_context(_rsync_daemon(directory / "rsyncd")),
        }


def _keys(clients: SshClients, directory: Path) -> Path:
    directory.mkdir()
    make_key(directory / "stranger")
    make_key(directory / "locked", passphrase="a passphrase")
    public(make_key(directory / "open")).unlink()
    (directory / "open").chmod(0o644)
    (directory / "garbage").write_text("no key\n")
    (directory / "garbage").chmod(0o600)
    lines = clients.key.read_text().splitlines()
    (directory / "damaged").write_text("\n".join([lines[0], lines[1][::-1], *lines[2:]]) + "\n")
    (directory / "damaged").chmod(0o600)
    for name, options in {
        "expired": {"valid": "-2h:-1h"},
        "early": {"valid": "+1h:+2h"},
        "other-user": {"user": "prober-of-another-site"},
    }.items():
        clients.certify(make_key(directory / name), **options)
    (directory / "changed").write_text(f"site {public(directory / 'stranger').read_text()}")
    (directory / "revoked").write_bytes(public(directory.parent / "ssh" / "site" / "host_key").read_bytes())
    return directory


@contextlib.contextmanager
def _rsync_daemon(root: Path) -> Iterator[str]:
    (root / "public").mkdir(parents=True)
    (root / "public" / "data").write_text("data\n")
    configuration = root / "rsyncd.conf"
    configuration.write_text(_RSYNCD.format(root=root))
    address, port = "127.0.0.1", free_port("127.0.0.1")
    argv = [locate("rsync"), "--daemon", "--no-detach", f"--config={configuration}"]
    argv += [f"--address={address}", f"--port={port}"]
    with serving(argv, ready=lambda: listens(address, port)):
        yield f"rsync://{address}:{port}"
