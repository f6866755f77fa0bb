"""Our own Valkey: on a Unix socket, as ourselves, keeping what it holds on disk."""

from __future__ import annotations

from pathlib import Path

from monitor import env
from monitor.supervisor import Service

from . import places, urls
from .binaries import valkey_program


class Valkey:
    """The server of one directory of state. With ``durable=False`` it writes nothing to disk.

    Raises:
        NoProgram: there is no Valkey for this platform.
    """

    name = "valkey"

    def __init__(self, var: Path, *, durable: bool = True) -> None:
        self.var = env.make_var_directory(var)
        self.url = urls.valkey_url(var)
        self._durable = durable
        self._program = valkey_program()

    def service(self) -> Service:
        """For the supervisor. At SIGTERM it writes its data once more."""
        return Service(
            name=self.name,
            argv=[str(self._program), *self._options()],
            before=self.prepare,
            ready=self.ready,
            grace_seconds=10.0,
        )

    def _options(self) -> list[str]:
        # "--save" with an empty text switches saving off.
        listening = [
            "--port",
            "0",
            "--unixsocket",
            str(urls.valkey_socket(self.var)),
            "--unixsocketperm",
            "700",
        ]
        keeping = ["--save", "60 1" if self._durable else "", "--appendonly", "no"]
        return [*listening, *keeping, "--dir", str(self._data), "--daemonize", "no", "--loglevel", "warning"]

    @property
    def _data(self) -> Path:
        return self.var.resolve() / "valkey"

    def prepare(self) -> None:
        """Make everything that a start needs, and remove what a killed server was about to write.

        Raises:
            NotOurs: the sockets' directory is somebody else's.
        """
        places.sockets_made(self.var)
        self._data.mkdir(mode=0o700, exist_ok=True)
        for half_written in self._data.glob("temp-*.rdb"):
            half_written.unlink()

    def ready(self) -> bool:
        """Whether it answers; while it loads its data it does not."""
        import redis  # noqa: PLC0415 - slow to import, and most who import this only want ``url``

        client = redis.Redis(unix_socket_path=str(urls.valkey_socket(self.var)), socket_timeout=2.0)
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
        finally:
            client.close()
