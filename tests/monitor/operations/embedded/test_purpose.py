from __future__ import annotations

from pathlib import Path

import pytest

from monitor.operations.embedded import purpose
from monitor.operations.embedded.clean import FORCE, HoldsMeasurements, clean


def test_a_state_directory_keeps_its_purpose(tmp_path: Path) -> None:
    purpose.claim(tmp_path / "var", purpose.SERVE)
    purpose.claim(tmp_path / "var", purpose.SERVE)


def test_a_demo_does_not_add_its_series_to_a_real_grid(tmp_path: Path) -> None:
    purpose.claim(tmp_path / "var", purpose.SERVE)
    with pytest.raises(purpose.OtherPurpose, match=r"holds the state of `make serve`.*GRIDCAST_VAR"):
        purpose.claim(tmp_path / "var", purpose.DEMO)


def test_a_real_grid_does_not_begin_with_the_state_of_a_demo(tmp_path: Path) -> None:
    purpose.claim(tmp_path / "var", purpose.DEMO)
    with pytest.raises(purpose.OtherPurpose, match="holds the state of `make demo`"):
        purpose.claim(tmp_path / "var", purpose.SERVE)


def test_a_claim_that_was_killed_leaves_a_usable_directory(tmp_path: Path) -> None:
    assert purpose.current(tmp_path) == ""
    purpose.claim(tmp_path, purpose.DEMO)
    assert purpose.current(tmp_path) == purpose.DEMO
    assert {path.name for path in tmp_path.iterdir()} == {".gridcast", "purpose"}


def test_measurements_are_removed_only_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    purpose.claim(tmp_path / "var", purpose.SERVE)
    monkeypatch.delenv(FORCE, raising=False)
    with pytest.raises(HoldsMeasurements, match="make clean FORCE=1"):
        clean(tmp_path / "var")
    monkeypatch.setenv(FORCE, "1")
    clean(tmp_path / "var")
    assert not (tmp_path / "var").exists()
