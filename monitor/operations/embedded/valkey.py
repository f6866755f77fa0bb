"""The embedded Valkey: listens on a Unix socket, runs as the current user, saves to disk."""

from __future__ import annotations

from pathlib import Path

from monitor.core import env
from monitor.operations.supervisor import Service

from . import places, urls
from .binaries import valkey_program


class Valkey:
    """The Valkey of one state directory. With ``durable=False`` the server writes nothing to disk.

    Raises:
        ProgramNotFound: Valkey is not installed.
    """

    name = "valkey"

    def __init__(self, var: Path, *, durable: bool = True) -> None:
        self.var = env.make_var_directory(var)
        self.url = urls.valkey_url(var)
        self._durable = durable
        self._program = valkey_program()

    def service(self) -> Service:
        """Return the service to supervise. At its stop signal SIGTERM the server saves its data."""
        return Service(
            name=self.name,
            argv=[str(self._program), *self._options()],
            before=self.prepare,
            ready=self.ready,
            asleep_seconds=60.0,  # it wakes ten times a second
            grace_seconds=10.0,
        )

    def _options(self) -> list[str]:
        # "--save" with an empty string disables saving.
        listening = [
            "--port",
            "0",
            "--unixsocket",
            str(urls.valkey_socket(self.var)),
            "--unixsocketperm",
            "700",
        ]
        saving = ["--save", "60 1" if self._durable else "", "--appendonly", "no"]
        return [*listening, *saving, "--dir", str(self._data), "--daemonize", "no", "--loglevel", "warning"]

    @property
    def _data(self) -> Path:
        return self.var.resolve() / "valkey"

    def prepare(self) -> None:
        """Create the directories that a start needs; remove incomplete files that a killed server left.

        Raises:
            NotOurs: the socket directory belongs to another user.
        """
        places.make_socket_directory(self.var)
        self._data.mkdir(mode=0o700, exist_ok=True)
        for incomplete in self._data.glob("temp-*.rdb"):
            incomplete.unlink()

    def ready(self) -> bool:
        """Return whether the server answers, which it does only after it has loaded its data."""
        import redis  # noqa: PLC0415 - slow to import
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

        client = redis.Redis(
            unix_socket_path=str(urls.valkey_socket(self.var)),
            socket_timeout=2.0,
            retry=Retry(NoBackoff(), 0),  # the supervisor calls again; the default blocks it for seconds
        )
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        finally:
            client.close()
