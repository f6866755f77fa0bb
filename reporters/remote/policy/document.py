"""The keys of a site policy. The reader and the published schema are both made from ``SHAPE``."""

from __future__ import annotations

from collections.abc import Mapping

from reporters.remote.policy import rules
from reporters.remote.policy.shapes import ChoiceShape, ObjectShape, TextShape
from reporters.schedule import InvalidSchedule, find_zone

DISCLOSURES: Mapping[str, str] = {
    "full": "reports are sent unchanged",
    "redacted": "hosts, users, paths and addresses are replaced by pseudonyms, logs and stderr are withheld",
    "minimal": "only ids, times, numbers and outcomes are sent",
}
APPROVALS: Mapping[str, str] = {
    "auto": "a new assignment takes effect at once",
    "ask": "a changed assignment waits for the command `approve`",
    "frozen": "a changed assignment is refused",
}


def _zone_problem(name: str) -> str:
    try:
        find_zone(name)
    except InvalidSchedule as error:
        return str(error)
    return ""


SHAPE = ObjectShape(
    {
        "timezone": TextShape(
            "[A-Za-z0-9_+/-]{1,60}",
            "an IANA time zone",
            "IANA time zone of the forbidden hours and of the days that caps count (default: UTC)",
            problem=_zone_problem,
        ),
        **{name: rules.load(name).shape for name in rules.names()},
        "disclosure": ChoiceShape(DISCLOSURES, "what reports tell (default: full)"),
        "approval": ChoiceShape(APPROVALS, "what becomes of changes of the assignment (default: auto)"),
    },
    description='a key that begins with "comment" or "//" is a comment, in every object',
)
