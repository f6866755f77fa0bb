"""What ``install`` writes into a state directory: copies of the reporter by digest, and a service.

``versions/DIGEST.pyz`` is a copy of the reporter, ``start`` a script that runs one of them, and
``service.json`` names the kind of service that runs the script.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reporters.fields import Unfit, parse_object
from reporters.remote import archive, services, this_archive, unpacked
from reporters.remote.errors import UsageFault
from reporters.remote.files import write_atomically
from reporters.remote.service import (
    KEPT_VARIABLES,
    LOG,
    START,
    AgentService,
    Launch,
    run_arguments,
    start_script,
)

RECORD = "service.json"
VERSIONS = "versions"
_RECORD_BYTES = 65536


@dataclass(frozen=True)
class InstallRecord:
    """What is installed: a kind of service, the options of its job, and the digests of two versions.

    *variables* are those of the environment of the agent.
    """

    kind: str
    options: Sequence[str]
    version: str
    previous: str  # empty before the first upgrade
    variables: Mapping[str, str]


class SiteInstallation:
    """The installation in the state directory *state*, which exists and belongs to this user."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def file(self, version: str) -> Path:
        """Return where the copy of *version*, a digest, is or will be."""
        return self.state / VERSIONS / f"{version}.pyz"

    def record(self) -> InstallRecord | None:
        """Return what is installed; None if nothing is.

        Raises:
            UsageFault: the record is damaged.
        """
        file = self.state / RECORD
        try:
            fields = parse_object(file.read_bytes(), max_bytes=_RECORD_BYTES)
            return InstallRecord(
                str(fields["kind"]),
                [str(option) for option in fields["options"]],
                str(fields["version"]),
                str(fields["previous"]),
                {str(name): str(value) for name, value in fields["variables"].items()},
            )
        except FileNotFoundError:
            return None
        except (OSError, Unfit, KeyError, TypeError, AttributeError) as error:
            raise UsageFault(
                f"cannot read {file}: {error}; remove the service by hand, and the file"
            ) from None

    def service(self) -> AgentService | None:
        """Return the installed service; None if there is none."""
        record = self.record()
        return services.load(record.kind)(Launch(self.state, record.options)) if record else None

    def install(
        self,
        service: str,
        options: Sequence[str],
        content: bytes,
        variables: Mapping[str, str],
        *,
        restarts: bool = False,
    ) -> tuple[AgentService, bool]:
        """Install the reporter *content*, to be started by the kind *service*.

        The agent is restarted if anything changed, or if *restarts*. Else a repetition changes nothing.
        Return the service, and whether the agent was started or restarted.

        Raises:
            OSError: a file cannot be written.
            ServiceFault: a program of the site refuses the service.
        """
        version, old = archive.digest(content), self.record()
        self._keep(version, content)
        installed = self.service()
        restarts = restarts or installed is None
        if installed is not None and old is not None and (old.kind, old.options) != (service, list(options)):
            installed.remove()
            restarts = True
        previous = old.previous if old and old.version == version else old.version if old else ""
        kept = {name: variables[name] for name in KEPT_VARIABLES if variables.get(name)}
        self._write_record(InstallRecord(service, list(options), version, previous, kept))
        launch = Launch(self.state, options)
        created = services.load(service)(launch)
        script = start_script(launch, sys.executable, self.file(version), kept).encode()
        if _content(launch.start) != script:
            write_atomically(launch.start, script, mode=0o700)
            restarts = True
        if restarts:
            created.stop()
        created.install()
        self._forget_versions({version, previous})
        return created, restarts

    def remove(self) -> str:
        """Stop the agent and remove everything that ``install`` wrote; return the kind, empty if none.

        Raises:
            ServiceFault: a program of the site refuses; ``remove`` may be repeated.
        """
        record, service = self.record(), self.service()
        if service is not None:
            service.remove()
        for directory in (VERSIONS, unpacked.DIRECTORY):
            shutil.rmtree(self.state / directory, ignore_errors=True)
        for name in (START, LOG, RECORD):
            (self.state / name).unlink(missing_ok=True)
        return record.kind if record else ""

    def _keep(self, version: str, content: bytes) -> None:
        file = self.file(version)
        if _content(file) != content:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomically(file, content, mode=0o700)

    def _forget_versions(self, kept: set[str]) -> None:
        for file in (self.state / VERSIONS).glob("*.pyz"):
            if file.stem not in kept:
                file.unlink()

    def _write_record(self, record: InstallRecord) -> None:
        text = json.dumps(vars(record), indent=1)
        write_atomically(self.state / RECORD, f"{text}\n".encode(), mode=0o600)


def own_content() -> bytes:
    """Return the content of the file that this reporter runs from, else its sources, packed."""
    file = this_archive.path()
    return file.read_bytes() if file else archive.build()


def direct_command(state: Path) -> list[str]:
    """Return the command that runs the agent without an installation."""
    file = this_archive.path() or SiteInstallation(state).file(archive.digest(own_content()))
    return [sys.executable, *run_arguments(file, state)]


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
