"""The process of the agent, by which the command ``run`` replaces itself.

The agent runs for months in the memory that it has at its start. ``run`` has read the archive and its options
and, at the first start of a version, compiled it; this process loads nothing but the agent.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    code = __file__.rpartition("/reporters/remote/agent/")[0]
    sys.path.insert(0, code)
    from reporters.deferred import defer, get_annotations

    # dataclasses, urllib.parse and subprocess import them for functions that are not used here.
    defer(("ipaddress", "locale"))
    functions = {"get_annotations": get_annotations} if (3, 12) <= sys.version_info < (3, 14) else {}
    defer(("inspect",), **functions)

    from pathlib import Path  # only now: it imports urllib.parse

    from reporters.remote.agent.start import main

    sys.exit(main(Path(code), sys.argv[1:]))
