"""The changes of one user that administrators make, as forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib.auth.models import Group
from django.utils import timezone

from monitor.core.units import counted
from monitor.depot.access import roles, tokens
from monitor.models import ApiToken, Identity, Site
from monitor.models.role import UserRole
from monitor.web.accounts import door_reasons, groups, identities, sessions, users
from monitor.web.pages.http.account_change import ChangeForm

if TYPE_CHECKING:
    from collections.abc import Sequence

    FactorChoice = forms.ModelChoiceField[Authenticator]
    SessionChoice = forms.ModelChoiceField[UserSession]
    TokenChoice = forms.ModelChoiceField[ApiToken]
else:
    FactorChoice = SessionChoice = TokenChoice = forms.ModelChoiceField

ROLE_TITLES = {
    UserRole.VIEWER: "reads suites without viewers, and those of its groups",
    UserRole.SCHEDULER: "forecasts, states of sites and outcomes only",
    UserRole.SITE_ADMIN: "reads; runs, holds, alerts, maintenance and reporters of own sites",
    UserRole.OPERATOR: "sees all, operates and configures everything, but no accounts",
    UserRole.ADMINISTRATOR: "everything",
}
FACTORS = {
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.WEBAUTHN: "passkey",
    Authenticator.Type.RECOVERY_CODES: "recovery codes",
}


def role_choices() -> list[tuple[str, str]]:
    return [(role.value, f"{role.value}: {title}") for role, title in ROLE_TITLES.items()]


def site_choices() -> list[tuple[str, str]]:
    return [("", "none"), *((name, name) for name in Site.objects.values_list("name", flat=True))]


class ProfileFields(forms.Form):
    first_name = forms.CharField(label="First name", max_length=150, required=False)
    last_name = forms.CharField(label="Last name", max_length=150, required=False)
    email = forms.EmailField(label="E-mail", max_length=254, required=False)


class ChangeProfile(ProfileFields, ChangeForm):
    verb, title, button = "profile", "Profile of {}", "Save"

    def set_up(self) -> None:
        self.initial = {field: getattr(self.subject, field) for field in users.PROFILE}

    def effects(self) -> list[str]:
        return ["The user name stays: records, alert rules and proxies name the account by it."]

    def act(self) -> str:
        users.set_profile(self.subject, self.cleaned_data)
        return f"Profile of {self.subject} saved."


class GrantRole(ChangeForm):
    verb, title, button = "grant", "Grant a role to {}", "Grant"
    role = forms.ChoiceField(label="Role", choices=role_choices)
    site = forms.ChoiceField(label="Site (role site_admin)", choices=site_choices, required=False)

    def act(self) -> str:
        given = roles.checked_grant(self.cleaned_data["role"], self.cleaned_data["site"] or None)
        roles.grant(self.subject, given)
        return f"{given} granted to {self.subject}."


class RevokeRole(ChangeForm):
    verb, title, button, presets = "revoke", "Revoke a role of {}", "Revoke", ("grant",)
    grant = forms.ChoiceField(label="Role")

    def set_up(self) -> None:
        choice: Any = self.fields["grant"]
        choice.choices = [(str(grant), str(grant)) for grant in roles.grants_of(self.subject)]

    def effects(self) -> list[str]:
        if self.subject.identities.exists():
            return ["Roles that the identity provider names stay."]
        return ["Without another role, the user reads as a viewer."]

    def act(self) -> str:
        taken = roles.parse_grant(self.cleaned_data["grant"])
        roles.revoke(self.subject, taken)
        return f"{taken} revoked from {self.subject}."

    def destination(self) -> tuple[Any, ...]:
        return ("account",) if self.subject == self.administrator else super().destination()


class JoinGroup(ChangeForm):
    verb, title, button = "join", "Add {} to a group", "Add"
    group = forms.ModelChoiceField(Group.objects.none(), label="Group", empty_label="choose")

    def set_up(self) -> None:
        self.offer("group", groups.without_roles().exclude(user=self.subject))

    def act(self) -> str:
        groups.add_member(self.cleaned_data["group"], self.subject)
        return f"{self.subject} is a member of {self.cleaned_data['group']}."


class LeaveGroup(ChangeForm):
    verb, title, button, presets = "leave", "Remove {} from a group", "Remove", ("group",)
    group = forms.ModelChoiceField(Group.objects.none(), label="Group", empty_label=None)

    def set_up(self) -> None:
        self.offer("group", groups.without_roles().filter(user=self.subject))

    def act(self) -> str:
        groups.remove_member(self.cleaned_data["group"], self.subject)
        return f"{self.subject} is no member of {self.cleaned_data['group']} any more."


class DisableUser(ChangeForm):
    verb, title, button, is_for_others = "disable", "Disable {}?", "Disable", True

    def effects(self) -> list[str]:
        number = sessions.of_user(self.subject).count()
        valid = ApiToken.objects.filter(user=self.subject).usable(timezone.now()).count()
        return [
            f"The user can log in nowhere; {counted(number, 'session')} end.",
            f"{counted(valid, 'API token')} stop; alert rules and webhooks of the user are suspended.",
            "Roles, tokens and second factors stay stored, and count again when the account is enabled.",
        ]

    def act(self) -> str:
        users.disable(self.subject)
        return f"{self.subject} is disabled; its sessions have ended."


class EnableUser(ChangeForm):
    verb, title, button = "enable", "Enable {}?", "Enable"

    def effects(self) -> list[str]:
        now = timezone.now()
        return [
            "Logins, roles, second factors, and tokens that have not expired count again as before.",
            *(
                f"The identity {identity} stays suspended, with what acts by it: {identity.suspension(now)}."
                for identity in self.subject.identities.suspended(now)
            ),
        ]

    def act(self) -> str:
        users.enable(self.subject)
        if why := door_reasons.locked_because(self.subject, timezone.now()):
            return f"{self.subject} is enabled, but no login opens the account now: {why}."
        return f"{self.subject} is enabled."


class NewPassword(forms.Form):
    """A password, typed twice; the validators of the settings judge it when it is set."""

    password1 = forms.CharField(
        label="Password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least ten characters; not common, not only digits, not similar to the name.",
    )
    password2 = forms.CharField(
        label="Password again",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("password1") != cleaned.get("password2"):
            self.add_error("password2", "The two passwords differ.")
        return cleaned


class SetPassword(NewPassword, ChangeForm):
    verb, title, button, is_for_others = "password", "Set the password of {}", "Set password", True

    def effects(self) -> list[str]:
        told = ["The user's sessions end. Tell the user the password; it is not shown again."]
        closed = door_reasons.closed_door(self.subject, timezone.now())
        if closed is not None:
            told.append(
                f"No password opens this account now: {closed.reason}. An administrator {closed.remedy}."
            )
        return told

    def act(self) -> str:
        number = users.set_password(self.subject, self.cleaned_data["password1"])
        return f"Password of {self.subject} set; {counted(number, 'session')} ended."


class FactorField(FactorChoice):
    def label_from_instance(self, obj: Authenticator) -> str:
        kind = FACTORS.get(obj.type, obj.type)
        name = f" {obj.wrap().name}" if obj.type == Authenticator.Type.WEBAUTHN else ""
        return f"{kind}{name}, added {obj.created_at:%Y-%m-%d}"


class RemoveFactor(ChangeForm):
    verb, title, button, presets = "remove-factor", "Remove a second factor of {}", "Remove", ("factor",)
    is_danger = is_for_others = True
    factor = FactorField(Authenticator.objects.none(), label="Second factor", empty_label=None)

    def set_up(self) -> None:
        self.offer("factor", Authenticator.objects.filter(user=self.subject).order_by("created_at"))

    def effects(self) -> list[str]:
        opens = door_reasons.what_opens(self.subject, timezone.now())
        return [f"Without another factor, {opens}.", "The user's sessions end."]

    def act(self) -> str:
        users.remove_factor(self.cleaned_data["factor"])
        return f"Second factor of {self.subject} removed; its sessions have ended."


class SessionField(SessionChoice):
    def label_from_instance(self, obj: UserSession) -> str:
        return f"{obj.ip}, since {obj.created_at:%Y-%m-%d %H:%M} UTC, {obj.user_agent[:60]}"


class EndSessions(ChangeForm):
    verb, title, button, presets = "end-sessions", "End sessions of {}", "End", ("session",)
    is_for_others = True
    session = SessionField(
        UserSession.objects.none(), label="Session", required=False, empty_label="all sessions"
    )

    def set_up(self) -> None:
        self.offer("session", sessions.of_user(self.subject))

    def act(self) -> str:
        chosen = self.cleaned_data["session"]
        number = users.end_sessions(self.subject, None if chosen is None else chosen.pk)
        return f"{counted(number, 'session')} of {self.subject} ended."


class DisconnectIdentity(ChangeForm):
    verb, title, button, presets = "disconnect", "Disconnect an identity of {}", "Disconnect", ("identity",)
    is_danger = is_for_others = True
    identity = forms.ModelChoiceField(Identity.objects.none(), label="Identity", empty_label=None)

    def set_up(self) -> None:
        self.offer("identity", self.subject.identities.all())

    def effects(self) -> list[str]:
        return [
            "Its roles go, API tokens that were made under it are revoked, and the user's sessions end.",
            "Alert rules and webhooks that were saved under it are suspended until a user saves them.",
            "Pauses of it go on if it is in force; if it is suspended, they end.",
            "A login there does not open this account any more.",
        ]

    def act(self) -> str:
        identities.disconnect(self.cleaned_data["identity"])
        return f"{self.subject} is not connected with {self.cleaned_data['identity']} any more."


class TokenField(TokenChoice):
    def label_from_instance(self, obj: ApiToken) -> str:
        return f"{obj.name} ({obj.prefix}…)"


class RevokeToken(ChangeForm):
    verb, title, button, presets = "revoke-token", "Revoke a token of {}", "Revoke", ("token",)
    is_danger = True
    token = TokenField(ApiToken.objects.none(), label="API token", empty_label=None)
    family = forms.BooleanField(label="Also the tokens that were rotated or issued with it", required=False)

    def set_up(self) -> None:
        self.offer("token", ApiToken.objects.filter(user=self.subject).usable(timezone.now()).order_by("-pk"))

    def act(self) -> str:
        token = self.cleaned_data["token"]
        alone = ApiToken.objects.filter(pk=token.pk)
        chosen = ApiToken.objects.family(token) if self.cleaned_data["family"] else alone
        return f"{counted(tokens.revoke(chosen, timezone.now()), 'token')} revoked."


class DeleteUser(ChangeForm):
    verb, title, button = "delete", "Delete {}?", "Delete user"
    is_danger = is_for_others = True
    name = forms.CharField(
        label="Type the user name",
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def effects(self) -> list[str]:
        lost: Sequence[str] = users.losses(self.subject)
        return [
            "Disable the account instead if it may return: the audit record then still says whose it was.",
            f"Deleted for ever with it: {', '.join(lost)}." if lost else "Nothing else is deleted with it.",
            "Alert rules and webhooks that the user saved last are suspended until another user saves them.",
        ]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.subject.get_username():
            raise forms.ValidationError(f"Expected {self.subject.get_username()}, got {name}.")
        return name

    def act(self) -> str:
        users.delete(self.subject)
        return f"{self.subject} is deleted."

    def destination(self) -> tuple[Any, ...]:
        return ("access",)
