"""``python -m reporters``: the commands of the reporter at a site, from a checkout."""

from __future__ import annotations

import sys

from reporters.remote.main import main

if __name__ == "__main__":
    sys.exit(main())
