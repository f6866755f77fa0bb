"""A small program in the place of the reporter's archive: its agent does nothing but run once per state."""

from __future__ import annotations

import io
import zipfile

_MAIN = """\
import os, signal, sys
state = sys.argv[sys.argv.index("--state") + 1]
owner = os.path.join(state, "owner")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
try:
    os.close(os.open(owner, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    sys.exit(0 if "--if-not-running" in sys.argv else 1)
try:
    with open(os.path.join(state, "starts"), "a") as starts:
        starts.write("{version}\\n")
    signal.pause()
finally:
    os.unlink(owner)
"""


def stand_in_agent(version: str) -> bytes:
    """Return an archive whose ``run`` adds *version* to the file ``starts`` of its state, and waits."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py"), _MAIN.replace("{version}", version))
    return content.getvalue()
