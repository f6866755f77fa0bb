"""Reporters whose agent is broken, packed as the real one is."""

from __future__ import annotations

import shutil
from pathlib import Path

from reporters.remote import archive

ROOT = Path(__file__).resolve().parents[3]
_RUN = """
import argparse, signal, sys
from reporters.remote import options as common

class Command:
    summary = "a test"

    @staticmethod
    def add_arguments(parser):
        common.add_state(parser)
        parser.add_argument("--if-not-running", action="store_true")

    @staticmethod
    def run(options):
        {body}
"""
MUTE = 'sys.stderr.write("nobody hears this\\n"); sys.stderr.flush(); signal.pause()'
CRASHING = 'raise RuntimeError("the new version is broken")'


def variant(directory: Path, body: str) -> Path:
    """Pack a reporter into a file in *directory*; its command ``run`` executes *body*."""
    for package in archive.PACKAGES:
        shutil.copytree(
            ROOT / package,
            directory / package,
            ignore=shutil.ignore_patterns("__pycache__"),
            dirs_exist_ok=True,
        )
    (directory / "reporters" / "remote" / "commands" / "run.py").write_text(_RUN.replace("{body}", body))
    file = directory / "variant.pyz"
    file.write_bytes(archive.build(directory))
    return file
