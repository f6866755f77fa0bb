from __future__ import annotations

import sys

import pytest

from forecasting import methods
from forecasting.base import UnknownMethod


def test_the_folder_is_the_registry() -> None:
    assert {"last_value", "local_level", "nws"} <= set(methods.names())


@pytest.mark.parametrize(
    "name", ["", "base", "nws.Method", "..base", "os", "antigravity", "forecasting.methods.nws"]
)
def test_a_name_from_outside_never_chooses_what_is_imported(name: str) -> None:
    with pytest.raises(UnknownMethod, match=r"known are .*nws"):
        methods.load(name)
    assert "antigravity" not in sys.modules
