"""The form of a signature: its fields as texts, and the values that they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from monitor.analysis.signatures.loading import MOST_CHARACTERS, MOST_PATTERNS
from monitor.analysis.signatures.signature import Signature
from monitor.models import OwnSignature
from monitor.models.failure_signature import UNKNOWN, Category, Severity

if TYPE_CHECKING:
    from django.http import QueryDict

Form = Mapping[str, str]
_DEFAULT, _YES, _NO = "", "yes", "no"
_COUNTS = {None: _DEFAULT, True: _YES, False: _NO}
_OPTIONAL: Mapping[str, Any] = {
    "help": "",
    "counts_against_site": None,
    "stages": [],
    "tools": [],
    "precedence": 0,
}
EMPTY: Form = {
    "name": "",
    "title": "",
    "category": "",
    "severity": Severity.MAJOR.value,
    "patterns": "",
    "help": "",
    "counts_against_site": _DEFAULT,
    "stages": "",
    "tools": "",
    "precedence": "0",
    "version": "",
}


def form_of_proposal(signature: Signature) -> Form:
    """Return the form of a proposed *signature*; a category that the text does not suggest is left open."""
    return {
        **EMPTY,
        "name": signature.name,
        "title": signature.title,
        "category": "" if signature.category == UNKNOWN else signature.category.value,
        "patterns": "\n".join(signature.patterns),
    }


def form_of_row(row: OwnSignature) -> Form:
    return {
        **{key: str(getattr(row, key)) for key in EMPTY},
        "patterns": "\n".join(row.patterns),
        "counts_against_site": _COUNTS[row.counts_against_site],
        "stages": " ".join(row.stages),
        "tools": " ".join(row.tools),
    }


def submitted(posted: QueryDict) -> Form:
    """Return the fields of a submitted form."""
    return {key: posted.get(key, "").replace("\x00", "").replace("\r\n", "\n").strip() for key in EMPTY}


def values_of(form: Form) -> dict[str, Any]:
    """Return the values of *form* as in a file of signatures, without those that have their defaults."""
    precedence = form["precedence"]
    is_number = re.fullmatch("-?[0-9]{1,9}", precedence) is not None
    values: dict[str, Any] = {
        "title": form["title"],
        "category": form["category"],
        "severity": form["severity"],
        "patterns": [line.strip() for line in form["patterns"].split("\n") if line.strip()],
        "help": form["help"],
        "counts_against_site": {_YES: True, _NO: False}.get(form["counts_against_site"]),
        "stages": form["stages"].split(),
        "tools": form["tools"].split(),
        "precedence": int(precedence) if is_number else precedence,
    }
    return {key: value for key, value in values.items() if key not in _OPTIONAL or value != _OPTIONAL[key]}


def form_context(form: Form, problems: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the form, with a message for each field of *problems*."""
    return {
        "form": form,
        "problems": problems,
        "patterns_characters": MOST_PATTERNS * (MOST_CHARACTERS + 1),
        "categories": Category.values,
        "severities": Severity.values,
        "counts": ((_DEFAULT, "as its category"), (_YES, "yes"), (_NO, "no")),
    }
