"""The directory layout of the local grid, and the names and addresses of its sites.

::

    grid.json  state.json  fault.json         description; state that a restart keeps; a fault set by hand
    ssh_config  known_hosts  reporter_key     for the OpenSSH client
    tools/                                    links to all programs except compilers
    sites/<name>/home  scratch                home and scratch directory of sessions
    sites/<name>/bin  bin-cc                  wrapper scripts; bin-cc has the compiler's
    sites/<name>/crontab                      commands that the site starts
    sites/<name>/weather                      the current weather, for programs that no session has started
    sites/<name>/paced                        the last slow mechanism of each running session
    sites/<name>/host_key  key  authorized_keys  ssh_config
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

USER = "grid"

NAMES = ("anl", "iu", "ornl", "tacc", "purdue", "ncsa", "sdsc", "utep", "asu", "rice", "vt", "umn", "psu")
FIRST_ADDRESS = 11  # 127.0.0.11
MAXIMUM_SITES = 200


def site_names(count: int) -> tuple[str, ...]:
    """Return the names of *count* sites; after the names of real sites come ``site14``, ``site15``, ..."""
    if not 1 <= count <= MAXIMUM_SITES:
        raise ValueError(f"a local grid has 1 to {MAXIMUM_SITES} sites, not {count}")
    return NAMES[:count] + tuple(f"site{number}" for number in range(len(NAMES) + 1, count + 1))


@dataclass(frozen=True)
class SiteLayout:
    """The paths and the address of one site; *index* is its position in the grid, from 0."""

    name: str
    index: int
    root: Path

    @property
    def address(self) -> str:
        return f"127.0.0.{FIRST_ADDRESS + self.index}"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def crontab(self) -> Path:
        return self.root / "crontab"

    @property
    def weather(self) -> Path:
        return self.root / "weather"

    @property
    def compiler_bin(self) -> Path:
        return self.root / "bin-cc"

    @property
    def host_key(self) -> Path:
        return self.root / "host_key"

    @property
    def paced(self) -> Path:
        """Return the directory to which a session's programs write the mechanism that slows them down."""
        return self.root / "paced"

    @property
    def key(self) -> Path:
        return self.root / "key"

    @property
    def authorized_keys(self) -> Path:
        return self.root / "authorized_keys"

    @property
    def ssh_config(self) -> Path:
        return self.root / "ssh_config"


@dataclass(frozen=True)
class Layout:
    """The paths of a whole grid."""

    directory: Path
    sites: tuple[SiteLayout, ...]

    @classmethod
    def of(cls, directory: Path, count: int) -> Layout:
        directory = directory.resolve()
        names = site_names(count)
        sites = (SiteLayout(name, index, directory / "sites" / name) for index, name in enumerate(names))
        return cls(directory, tuple(sites))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(site.name for site in self.sites)

    @property
    def reporter_key(self) -> Path:
        return self.directory / "reporter_key"

    @property
    def known_hosts(self) -> Path:
        return self.directory / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        return self.directory / "ssh_config"

    @property
    def tools(self) -> Path:
        return self.directory / "tools"

    def by_address(self, address: str) -> SiteLayout | None:
        """Return the site that connects from *address*; None if the client is outside the grid."""
        return next((site for site in self.sites if site.address == address), None)
