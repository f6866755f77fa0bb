"""The programs that a site needs (docs/sites.md)."""

from __future__ import annotations

# Used by every run: shells, scratch directories, jobs and checksums.
NEEDED = ("sh", "timeout", "setsid", "mkfifo", "mktemp", "df", "dd", "cmp", "sha256sum", "find")
# Each copies files from this site to another one.
COPIERS = ("scp", "sftp", "rsync", "globus-url-copy", "xrdcp")
