"""Availability profiles of a grid file make versions when they are applied."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from monitor.models import ProfileVersion
from tests.monitor.operations.gridfile.conftest import GridCommand

FILE = """
version: 1
sites: {a: {}, b: {}}
availability_profiles:
  own: {sites: [a], valid_from: 2026-03-05, needs: any}
"""


@pytest.mark.django_db
def test_a_grid_file_makes_versions(grid: GridCommand, tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text(FILE)
    assert grid("apply", file)[0] == 0
    assert grid("plan", "--exit-code", file)[0] == 0
    file.write_text(FILE.replace("[a]", "[a, b]").replace("any", "all"))
    changes = '    sites: ["a"] -> ["a", "b"]\n    needs: "any" -> "all"\n'
    assert grid("plan", file)[1].startswith(f"~ availability profile own\n{changes}")
    assert ProfileVersion.objects.count() == 1
    grid("apply", file)
    file.write_text("version: 1\nsites: {a: {}, b: {}}\n")
    grid("apply", file)
    assert ProfileVersion.objects.count() == 2, "without --prune it is kept"
    grid("apply", "--prune", file)
    versions = ProfileVersion.objects.order_by("number")
    assert [(str(each), each.rules and each.rules["needs"]) for each in versions] == [
        ("own-1", "any"),
        ("own-2", "all"),
        ("own-3", None),
    ]
    assert (versions[0].valid_from, len(versions[1].site_keys)) == (date(2026, 3, 5), 2)
