"""The reporter at a site: one file, standard library only, no privileges.

``archive.py`` packs ``probes`` and ``reporters`` into ``gridcast-reporter.pyz``; ``main.py`` is its command
line, and each command is a module of ``commands``.
"""

VERSION = "0.1.0"  # that of pyproject.toml
