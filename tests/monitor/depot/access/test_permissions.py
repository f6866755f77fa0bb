"""Administrators are offered the permissions that the code asks for, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission

from monitor.depot.access.permissions import ASKED_FOR
from monitor.web.pages.http.account_change import permissions_of_the_service

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[4]
# These compute names of permissions: of the entries of the grid, by verb and noun.
COMPUTED = {
    "monitor/depot/access/permissions.py",
    "monitor/depot/access/tokens.py",
    "monitor/web/api/grid.py",
}
NO_PERMISSIONS = {"monitor/web/accounts/settings_checks.py"}  # ids of checks
LISTED = "monitor/depot/access/permissions.py"


def sources() -> dict[str, str]:
    files = [*ROOT.glob("monitor/**/*.py"), *ROOT.glob("templates/**/*.html")]
    relative = {str(file.relative_to(ROOT)): file for file in files}
    return {name: file.read_text() for name, file in relative.items() if "/migrations/" not in name}


def literals(name: str, source: str) -> set[str]:
    """Return what may be names of permissions in a file of Python, or a template."""
    if name.endswith(".html"):
        return set(re.findall(r"\bperms\.(monitor\.\w+)", source))
    constants = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {text for text in constants if isinstance(text, str) and text.startswith("monitor.")}


def test_each_permission_that_the_code_asks_for_is_offered() -> None:
    codenames = set(
        Permission.objects.filter(content_type__app_label="monitor").values_list("codename", flat=True)
    )
    known = {f"monitor.{codename}" for codename in codenames}
    asked = {
        text
        for name, source in sources().items()
        if name != LISTED
        for text in literals(name, source) & known
    }
    assert len(asked) > 10
    assert asked - ASKED_FOR == set(), "add it to monitor/depot/access/permissions.py"
    computed = {
        f"monitor.{verb}_{noun}"
        for verb in ("add", "change", "delete")
        for noun in ("site", "resource", "suite", "series")
    }
    assert ASKED_FOR - asked - computed == set(), "nothing asks for it any more"


def test_no_other_file_computes_names_of_permissions() -> None:
    computing = {name for name, source in sources().items() if re.search(r'f"monitor\.[^"]*\{', source)}
    assert computing - NO_PERMISSIONS == COMPUTED


def test_the_form_offers_exactly_these() -> None:
    offered = {f"monitor.{permission.codename}" for permission in permissions_of_the_service()}
    assert offered == ASKED_FOR
