"""A user as the database has it acts by what is granted here alone, until code says by which identity.

Code that asks for its rights before would forget what the identity of its token, rule or webhook brings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
# Accounts themselves are looked up there: what a user may do is asked of the session.
OF_ACCOUNTS = ("monitor/web/accounts/", "monitor/management/", "monitor/migrations/")
SAY_AN_IDENTITY = {"act_as", "acting"}
RELATIONS_TO_USERS = {"author", "created_by"}
ASK_FOR_RIGHTS = {
    *("visible_to", "each_visible_to", "manageable_by", "manageable_or_visible_to", "reportable_by"),
    *("with_series_visible_to", "visible_suites", "visibility", "sees_all", "has_perm", "has_perms"),
    *("roles_of", "permissions_of", "is_administrator", "opens_admin", "reads_measurements"),
    *("may_manage_everywhere", "may_manage_somewhere", "offered_scopes"),
}
# These read users, and ask for no rights of them.
NO_RIGHTS_ASKED = {
    "monitor/depot/access/roles.py": {"_raise_flags", "_lower_flags", "administrators"},
    "monitor/depot/access/tokens.py": {"_check_number"},
    "monitor/web/api/incidents.py": {"_user_name"},
    "monitor/web/api/outcomes.py": {"_other"},  # the rights are those of the request's user
    "monitor/models/identity.py": {"lock_of"},
    "monitor/web/pages/access.py": {"_found"},
    "monitor/web/pages/access_groups.py": {"clean_user"},
    "monitor/web/pages/incidents.py": {"_actions", "_assign"},
}


def _functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted((ROOT / "monitor").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(OF_ACCOUNTS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield name, node


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _reads_users(node: ast.AST) -> bool:
    """Return whether *node* has ``User.objects`` or ``get_user_model().objects``."""
    if not isinstance(node, ast.Attribute) or node.attr != "objects":
        return False
    is_call = isinstance(node.value, ast.Call) and _called(node.value) == "get_user_model"
    return is_call or (isinstance(node.value, ast.Name) and node.value.id == "User")


def test_each_function_that_reads_a_user_says_by_which_identity_it_acts() -> None:
    silent: dict[str, set[str]] = {}
    for name, function in _functions():
        nodes = list(ast.walk(function))
        called = {_called(node) for node in nodes if isinstance(node, ast.Call)}
        if any(map(_reads_users, nodes)) and not called & SAY_AN_IDENTITY:
            silent.setdefault(name, set()).add(function.name)
    assert silent == NO_RIGHTS_ASKED


def test_no_rights_are_asked_of_an_author_as_the_database_has_it() -> None:
    """``present_author`` has the identity."""
    asked = [
        f"{name}: {ast.unparse(call)}"
        for name, function in _functions()
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and _called(call) in ASK_FOR_RIGHTS
        for argument in call.args
        if isinstance(argument, ast.Attribute) and argument.attr in RELATIONS_TO_USERS
    ]
    assert asked == []
