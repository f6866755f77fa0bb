"""The weather profiles: one file each, with a ``PROFILE``. The folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil

from monitor.testbed.weather.figures import UnknownProfile
from monitor.testbed.weather.profile import Profile


def names() -> list[str]:
    """The names of all profiles, sorted."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__))


def load(name: str) -> Profile:
    """Return the profile called *name*.

    Raises:
        UnknownProfile: *name* is not in the listing; nothing was imported.
    """
    known = names()
    if name not in known:  # checked first: a name from outside must never choose what is imported
        raise UnknownProfile(f"there is no weather profile {name!r}; known are {', '.join(known)}")
    profile: Profile = importlib.import_module(f"{__name__}.{name}").PROFILE
    return profile
