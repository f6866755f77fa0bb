"""The description of a running grid, ``grid.json``, which exists while all sites listen."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from monitor.testbed.errors import DamagedState
from reporters.config import ResourceConfig
from reporters.report import parse_rfc3339, rfc3339

FILE_NAME = "grid.json"
LOOPBACK, WAN = "loopback", "wan"


@dataclass(frozen=True)
class GridDescription:
    """The sites of a grid in order, how to reach them, and the parameters of their weather.

    Attributes:
        resources: one resource for each site, by the name of the site.
        compute, destination: names of the compute site and of the destination.
        profile: name of the weather profile.
        scale: number of grid seconds per real second.
        epoch: time of the weather's step 0.
        reference_file_bytes, reference_result_bytes: sizes of a file and of a result whose transfer takes the
            time that the weather generator draws for it.
        pid: pid of the process that runs the grid.
        applications: patterns of names of series (``*`` matches any ending) that meet the weather of PreCo.
        kind: ``LOOPBACK`` or ``WAN``.
    """

    directory: Path
    sites: tuple[str, ...]
    resources: dict[str, ResourceConfig]
    compute: str
    destination: str
    profile: str
    seed: int
    scale: float
    epoch: datetime
    reference_file_bytes: int
    reference_result_bytes: int
    pid: int
    applications: tuple[str, ...] = ()
    kind: str = LOOPBACK

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sites that are neither the compute site nor the destination."""
        return tuple(name for name in self.sites if name not in (self.compute, self.destination))

    @property
    def ssh_config(self) -> Path:
        """Return the file for ``ssh -F`` with which every site can be reached by its name."""
        return self.directory / "ssh_config"

    def to_json(self) -> str:
        document = dataclasses.asdict(self)
        document.update(directory=str(self.directory), epoch=rfc3339(self.epoch))
        return json.dumps(document, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> GridDescription:
        """Parse *text* as ``to_json`` writes it. Raises DamagedState for any other text."""
        try:
            return cls._from_document(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedState(f"cannot parse the description of the local grid: {error!r}") from error

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> GridDescription:
        resources = {name: ResourceConfig(**fields) for name, fields in document["resources"].items()}
        changed = {
            "directory": Path(document["directory"]),
            "sites": tuple(document["sites"]),
            "resources": resources,
            "epoch": parse_rfc3339(document["epoch"]),
            "applications": tuple(document["applications"]),
        }
        return cls(**{**document, **changed})


def load_description(directory: Path) -> GridDescription | None:
    """Return the description of the grid that is up in *directory*; None if no grid is up.

    Raises:
        DamagedState: the description cannot be parsed.
    """
    try:
        text = (directory / FILE_NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return GridDescription.from_json(text)
