"""The state that a restart of the local grid keeps: port, epoch of the weather, passwords."""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from monitor.testbed.sites.files import write_atomically
from reporters.report import parse_rfc3339, rfc3339

FILE_NAME = "state.json"

# Below the usual range of ephemeral ports.
PORTS = range(20_000, 30_000)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GridState:
    """The state of a local grid.

    Attributes:
        port: port of every site; the sites differ in their addresses.
        epoch: time of the weather's step 0.
        passwords: password of each site, by the name of the site.
    """

    port: int
    epoch: datetime
    passwords: dict[str, str]


def new_state(now: datetime) -> GridState:
    return GridState(port=random_port(), epoch=now, passwords={})


def random_port() -> int:
    """Return a port to try, at random without a seed: processes with the same seed would collide."""
    return secrets.choice(PORTS)


def load_state(directory: Path) -> GridState:
    """Return the state of the last start; a new state if the file is missing or cannot be parsed."""
    path = directory / FILE_NAME
    now = datetime.now(UTC)
    try:
        return parse_state(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return new_state(now)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning(
            "cannot parse %s (%r): the sites get a new port, new weather and new passwords", path, error
        )
        return new_state(now)


def parse_state(text: str) -> GridState:
    """Parse the text of a state file.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: *text* is not the text of a state.
    """
    document = json.loads(text)
    port = int(document["port"])
    if not 0 < port < 65_536:
        raise ValueError(f"not a port: {port}")
    passwords = {str(name): str(password) for name, password in document["passwords"].items()}
    return GridState(port, parse_rfc3339(document["epoch"]), passwords)


def save_state(directory: Path, state: GridState) -> None:
    document = {"port": state.port, "epoch": rfc3339(state.epoch), "passwords": state.passwords}
    write_atomically(directory / FILE_NAME, json.dumps(document, indent=2) + "\n", mode=0o600)


def with_passwords(state: GridState, names: tuple[str, ...]) -> GridState:
    """Return *state* with a password for each of *names*; existing passwords stay."""
    passwords = {name: state.passwords.get(name) or secrets.token_urlsafe(12) for name in names}
    return GridState(state.port, state.epoch, {**state.passwords, **passwords})
