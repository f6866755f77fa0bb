"""Passkeys (WebAuthn): challenges for browsers, and the checks of what they return.

fido2 checks types, flags, the host and signatures. The checks here are those that allauth leaves out: the
origin, other sites' frames, challenges that are consumed once, signature counters, and which passkeys log in
without the password.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import struct
from typing import TYPE_CHECKING, Any, TypeVar

from allauth.account.utils import url_str_to_user_pk
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal.auth import EXTENSIONS
from cryptography.exceptions import UnsupportedAlgorithm
from django.contrib.auth.models import User
from django.utils import timezone
from fido2.cose import CoseKey
from fido2.server import Fido2Server
from fido2.utils import websafe_encode
from fido2.webauthn import (
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from monitor.depot.access.audit_trail import note
from monitor.models import PasskeyChallenge, PasskeyHandle
from monitor.models.passkey import Ceremony, logs_in_without_password
from monitor.web.accounts import attempts, codes
from monitor.web.accounts.relying_party import RelyingParty, relying_party

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import AbstractBaseUser
    from django.http import HttpRequest
    from fido2.webauthn import CollectedClientData

MOST_CHARACTERS = 16_384  # of a browser's answer
_BROWSER = "gridcast_passkey_browser"  # in a session that asked for a challenge
# What the parsers of JSON, CBOR, keys and signatures raise for bytes that are something else.
_MALFORMED = (
    *(AssertionError, AttributeError, LookupError, NotImplementedError, OverflowError, RecursionError),
    *(TypeError, UnsupportedAlgorithm, ValueError, struct.error),
)
_UNKNOWN = (
    "The passkey belongs to no account here, or was removed from it. Log in another way, and add it again."
)
Answer = TypeVar("Answer")


class PasskeyRefused(Exception):
    """The message, for the user, says why; *name*: of the account, where the passkey named one."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


def begin_registration(request: HttpRequest, user: AbstractBaseUser) -> dict[str, Any]:
    """Return the options with which the browser makes a passkey of *user*.

    Raises:
        PasskeysUnavailable: as ``relying_party``.
    """
    party = relying_party(request)
    name = user.get_username()
    handle = PasskeyHandle.objects.of_user(user)
    entity = PublicKeyCredentialUserEntity(id=handle, name=name, display_name=name)
    options, state = _server(party).register_begin(
        user=entity,
        credentials=[_credential(passkey) for passkey in of_user(user)],
        resident_key_requirement=ResidentKeyRequirement.DISCOURAGED,  # the page changes both, if it is to
        user_verification=UserVerificationRequirement.PREFERRED,  # log in without the password
        extensions=EXTENSIONS,
    )
    _store(request, state, Ceremony.REGISTRATION, user)
    return dict(options)


def complete_registration(
    request: HttpRequest, user: AbstractBaseUser, text: str, *, is_passwordless: bool
) -> dict[str, Any]:
    """Return the credential in *text*, the browser's answer, as it is stored.

    Raises:
        PasskeyRefused: the answer is malformed, not for us, or not for a challenge that still waits.
    """
    party = relying_party(request)
    answer = _parse(RegistrationResponse.from_dict, text)
    client_data = answer.response.client_data
    state = _consume(request, client_data, Ceremony.REGISTRATION, user, is_verified=is_passwordless)
    _check_origin(party, client_data)
    data = _checked(lambda: _server(party).register_complete(state, answer))
    if data.credential_data.public_key.get(3) not in CoseKey.supported_algorithms():
        raise PasskeyRefused("The device made a passkey of a kind that gridcast cannot check.")
    is_resident = None  # unknown: not every browser says it
    with contextlib.suppress(*_MALFORMED):
        is_resident = answer.client_extension_results["credProps"]["rk"]
    if is_passwordless and is_resident is False:
        raise PasskeyRefused("This device cannot log in without the password: uncheck that, and try again.")
    codes.lock_factors(user)
    if _with_id(user, answer.raw_id) is not None:
        raise PasskeyRefused("This device has a passkey of this account already.")
    return {
        "id": answer.id,
        "rawId": websafe_encode(answer.raw_id),
        "type": "public-key",
        "response": {
            "clientDataJSON": websafe_encode(client_data),
            "attestationObject": websafe_encode(answer.response.attestation_object),
        },
    }


def begin_authentication(request: HttpRequest, user: AbstractBaseUser | None) -> dict[str, Any]:
    """Return the options with which the browser asks for a passkey of *user*; None: for one of any user.

    Raises:
        PasskeysUnavailable: as ``relying_party``.
    """
    party = relying_party(request)
    needed = UserVerificationRequirement.PREFERRED if user else UserVerificationRequirement.REQUIRED
    credentials = [_credential(passkey) for passkey in of_user(user)] if user else []
    options, state = _server(party).authenticate_begin(credentials, user_verification=needed)
    _store(request, state, Ceremony.SECOND_FACTOR if user else Ceremony.LOGIN, user)
    return dict(options)


def complete_authentication(request: HttpRequest, user: AbstractBaseUser | None, text: str) -> Authenticator:
    """Return the passkey that made *text*, the browser's answer; its *user* attribute is the user.

    Without *user*, the passkey says who its user is, and must be one that logs in without the password.

    Raises:
        PasskeyRefused: the answer is malformed, not for us, or of no such passkey.
    """
    party = relying_party(request)
    answer = _parse(AuthenticationResponse.from_dict, text)
    client_data, handle = answer.response.client_data, answer.response.user_handle
    ceremony = Ceremony.SECOND_FACTOR if user else Ceremony.LOGIN
    state = _consume(request, client_data, ceremony, user, is_verified=user is None)
    _check_origin(party, client_data)
    owner = _user_of(handle) if handle or user is None else user
    if owner is None or (user is not None and owner.pk != user.pk):
        raise PasskeyRefused(_UNKNOWN)
    name = owner.get_username()
    codes.lock_factors(owner)
    passkey = _with_id(owner, answer.raw_id)
    if passkey is None:
        raise PasskeyRefused(_UNKNOWN)  # as without such a user: the handle alone must not tell
    if user is None and not logs_in_without_password(passkey):
        raise PasskeyRefused("This passkey is a second factor only: log in with the password first.", name)
    credential = _credential(passkey)
    _checked(lambda: _server(party).authenticate_complete(state, [credential], answer), name)
    _count(passkey, answer.response.authenticator_data.counter, name)
    return passkey


def of_user(user: AbstractBaseUser) -> list[Authenticator]:
    return list(
        Authenticator.objects.filter(user_id=user.pk, type=Authenticator.Type.WEBAUTHN).select_related("user")
    )


def _server(party: RelyingParty) -> Fido2Server:
    return Fido2Server(
        PublicKeyCredentialRpEntity(id=party.host, name="gridcast"),
        verify_origin=lambda origin: origin == party.origin,
    )


def _credential(passkey: Authenticator) -> Any:
    return passkey.wrap().authenticator_data.credential_data


def _with_id(user: AbstractBaseUser, credential_id: bytes) -> Authenticator | None:
    passkeys = (each for each in of_user(user) if _credential(each).credential_id == credential_id)
    return next(passkeys, None)


def _user_of(handle: bytes | None) -> User | None:
    """Return the user with *handle*; passkeys from before there were handles have the key of their user."""
    if not handle:
        raise PasskeyRefused("The device did not say whose passkey it is: log in with the password first.")
    if found := PasskeyHandle.objects.select_related("user").filter(handle=handle).first():
        return found.user
    try:
        return User.objects.filter(pk=url_str_to_user_pk(handle.decode("ascii"))).first()
    except (OverflowError, ValueError):
        return None


def _store(request: HttpRequest, state: Any, ceremony: Ceremony, user: AbstractBaseUser | None) -> None:
    browser = _browser(request) or secrets.token_urlsafe(24)
    request.session[_BROWSER] = browser
    digest = hashlib.sha256(browser.encode()).hexdigest()
    is_known = user is not None and attempts.known_browser(request, user) is not None
    PasskeyChallenge.objects.begin(
        state["challenge"], ceremony, digest, user, timezone.now(), is_known=is_known
    )


def _consume(
    request: HttpRequest,
    client_data: CollectedClientData,
    ceremony: Ceremony,
    user: AbstractBaseUser | None,
    *,
    is_verified: bool,
) -> dict[str, Any]:
    """Consume the challenge that *client_data* answers; return the state that fido2 compares with."""
    digest = hashlib.sha256(_browser(request).encode()).hexdigest()
    challenge = websafe_encode(client_data.challenge)
    if not PasskeyChallenge.objects.consume(challenge, ceremony, digest, user, timezone.now()):
        raise PasskeyRefused("The page was too old, or its passkey was used already. Try again.")
    needed = UserVerificationRequirement.REQUIRED if is_verified else UserVerificationRequirement.PREFERRED
    return {"challenge": challenge, "user_verification": needed}


def _browser(request: HttpRequest) -> str:
    return str(request.session.get(_BROWSER, ""))


def _check_origin(party: RelyingParty, client_data: CollectedClientData) -> None:
    members = json.loads(client_data)
    if members.get("crossOrigin", False) is not False or "topOrigin" in members:
        raise PasskeyRefused("The passkey was asked for inside a page of another site.")
    if client_data.origin != party.origin:
        asked = str(client_data.origin)[:100]
        raise PasskeyRefused(f"The passkey was asked for by {asked}, not by {party.origin}.")


def _count(passkey: Authenticator, counter: int, name: str) -> None:
    """Store the signature *counter* of this use: one that does not increase may be that of a copy.

    Passkeys that are synchronised between devices do not count: theirs is always zero.
    """
    last = passkey.data.get("counter", passkey.wrap().authenticator_data.counter)
    if (counter or last) and counter <= last:
        refusal = f"refused: signature counter {counter} after {last}"
        note("passkey", f"{name}: {passkey}", before=f"counter {last}", after=refusal)
        raise PasskeyRefused(
            f"The signature counter of the passkey {passkey} did not increase ({counter} after {last}): there"
            " may be a copy of it. Log in another way, remove it, and add it again.",
            name,
        )
    passkey.data["counter"] = counter
    passkey.save(update_fields=["data"])


def _parse(parse: Callable[[Any], Answer], text: str) -> Answer:
    try:
        answer = parse(json.loads(text))
        json.loads(answer.response.client_data)["challenge"].encode()  # type: ignore[attr-defined]
    except _MALFORMED as error:
        raise PasskeyRefused("The browser's answer is no passkey: reload the page, and try again.") from error
    return answer


def _checked(check: Callable[[], Answer], name: str = "") -> Answer:
    """Return what fido2 returns of *check*.

    Raises:
        PasskeyRefused: fido2 refuses the answer.
    """
    try:
        return check()
    except _MALFORMED as error:
        if "verif" in str(error):
            raise PasskeyRefused(
                "The device did not confirm that it is you, by finger, face or PIN.", name
            ) from error
        raise PasskeyRefused(f"The answer of the device is not valid: {str(error)[:100]}", name) from error
