"""The guide of the site policy: its example is a policy, and it names every key."""

from __future__ import annotations

import re
from pathlib import Path

from reporters.remote.policy.document import SHAPE
from reporters.remote.policy.parsing import parse_policy
from reporters.remote.policy.shapes import ObjectShape

GUIDE = (Path(__file__).resolve().parents[4] / "docs" / "site-policy.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)[0]


def keys(shape: ObjectShape) -> set[str]:
    inner = [keys(member) for member in shape.members.values() if isinstance(member, ObjectShape)]
    return set(shape.members).union(*inner)


def test_the_example_is_a_policy_with_every_key() -> None:
    policy = parse_policy(EXAMPLE.encode())
    assert (policy.status, policy.disclosure, policy.approval) == ("in_force", "redacted", "ask")
    assert [key for key in keys(SHAPE) if f'"{key}"' not in EXAMPLE] == []


def test_the_guide_explains_every_key() -> None:
    assert [key for key in keys(SHAPE) if f"`{key}`" not in GUIDE] == []
