"""The form of what is told about a site: notes, contacts, one a line, its place, and whether it is public."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from monitor.models.site import MOST_CONTACTS, MOST_NOTES
from monitor.operations.gridfile.site_details import CONFIGURED, SiteDetails

_CONTACT = re.compile(r"(?P<name>[^<>]*?)\s*(?:<(?P<email>[^<>]*)>)?")
_MOST_NAME = 200


class SiteForm(forms.Form):
    """*contacts* has a line per contact: ``Help desk <help@example.org>``; the address is optional.

    The title and whether the site is public are fields if *may_configure*.
    """

    title = forms.CharField(required=False, max_length=200)
    latitude = forms.FloatField(required=False, min_value=-90, max_value=90)
    longitude = forms.FloatField(required=False, min_value=-180, max_value=180)
    is_public = forms.BooleanField(required=False)
    notes = forms.CharField(required=False, max_length=MOST_NOTES, widget=forms.Textarea({"rows": 8}))
    contacts = forms.CharField(required=False, max_length=10_000, widget=forms.Textarea({"rows": 4}))

    def __init__(self, data: Mapping[str, Any] | None, *, details: SiteDetails, may_configure: bool) -> None:
        super().__init__(data, initial={**vars(details), "contacts": contact_lines(details.contacts)})
        self._details = details
        if not may_configure:
            for name in CONFIGURED:
                del self.fields[name]

    @property
    def details(self) -> SiteDetails:
        """The details that the valid form describes."""
        return replace(self._details, **self.cleaned_data)

    def clean_notes(self) -> str:
        return str(self.cleaned_data["notes"]).replace("\r\n", "\n")

    def clean_contacts(self) -> list[dict[str, str]]:
        lines = [line.strip() for line in self.cleaned_data["contacts"].splitlines()]
        contacts = [parse_contact(line) for line in lines if line]
        if len(contacts) > MOST_CONTACTS:
            raise ValidationError(f"Expected at most {MOST_CONTACTS} contacts, got {len(contacts)}.")
        return contacts


def parse_contact(line: str) -> dict[str, str]:
    """Return the contact ``NAME <ADDRESS>`` of *line*; a line that is an address has it as name and address.

    Raises:
        ValidationError: *line* has another format, or no valid address.
    """
    match = _CONTACT.fullmatch(line)
    name, email = (match["name"], match["email"]) if match else ("", "")
    if email is None:
        name, email = line, line if "@" in line else ""
    if not name or len(name) > _MOST_NAME:
        raise ValidationError(f"Expected NAME <ADDRESS>, such as Help desk <help@example.org>, got {line!r}.")
    if email:
        try:
            validate_email(email)
        except ValidationError:
            raise ValidationError(f"Expected an e-mail address, got {email!r}.") from None
    return {"name": name, "email": email}


def contact_lines(contacts: Iterable[Mapping[str, Any]]) -> str:
    """Return *contacts* as the form shows them."""
    return "\n".join(
        f"{contact['name']} <{contact['email']}>" if contact["email"] else contact["name"]
        for contact in contacts
    )
