from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.testbed.errors import MissingProgram
from monitor.testbed.storage import build


@pytest.fixture(scope="session")
def model_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled model; skips without a compiler."""
    try:
        return build.model_library(tmp_path_factory.mktemp("model"))
    except MissingProgram as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled emulator; skips without a compiler, FUSE or its headers."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no FUSE: /dev/fuse does not exist, or this user may not write to it")
    try:
        return build.emulator(tmp_path_factory.mktemp("emulator"))
    except MissingProgram as error:
        pytest.skip(str(error))
