"""Reporters whose agent is broken, packed as the real one is."""

from __future__ import annotations

import shutil
from pathlib import Path

from reporters.remote import archive

ROOT = Path(__file__).resolve().parents[4]
_RUN = """
import argparse, signal, sys
from reporters.remote import options as common

class Command:
    summary = "a test"

    @staticmethod
    def add_arguments(parser):
        common.add_state(parser)
        parser.add_argument("--if-not-running", action="store_true")
        parser.add_argument("--quiet", action="store_true")

    @staticmethod
    def run(options):
        {body}
"""
MUTE = 'sys.stderr.write("nobody hears this\\n"); sys.stderr.flush(); signal.pause()'
CRASHING = 'raise RuntimeError("the new version is broken")'


def variant(directory: Path, body: str) -> Path:
    """Pack a reporter into a file in *directory*; its command ``run`` executes *body*."""
    _copy(directory)
    (directory / "reporters" / "remote" / "commands" / "run.py").write_text(_RUN.replace("{body}", body))
    return _packed(directory)


def changed(directory: Path) -> Path:
    """Pack a reporter that works, with another digest."""
    _copy(directory)
    with (directory / "reporters" / "__init__.py").open("a") as file:
        file.write("# changed\n")
    return _packed(directory)


def _copy(directory: Path) -> None:
    for package in archive.PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, directory / package, ignore=ignored)


def _packed(directory: Path) -> Path:
    file = directory / "reporter.pyz"
    file.write_bytes(archive.build(directory))
    return file
