"""Signatures are those of the Standard Webhooks specification, and secrets can be rotated."""

from __future__ import annotations

import base64

import pytest

from monitor.analysis.webhooks import signature
from monitor.analysis.webhooks.signature import InvalidSecret

# The example of the specification's reference libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, AT = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_example_of_the_specification_is_signed_as_there() -> None:
    headers = signature.headers(MESSAGE, AT, BODY, signature.secrets_in("VARIABLE", {"VARIABLE": SECRET}))
    assert headers == {
        "webhook-id": MESSAGE,
        "webhook-timestamp": str(AT),
        "webhook-signature": SIGNATURE,
    }


def test_while_a_secret_is_rotated_both_sign() -> None:
    other = "whsec_" + base64.b64encode(bytes(32)).decode()
    keys = signature.secrets_in("VARIABLE", {"VARIABLE": f"{other} {SECRET}"})
    signatures = signature.headers(MESSAGE, AT, BODY, keys)["webhook-signature"].split(" ")
    assert len(signatures) == 2
    assert signatures[1] == SIGNATURE


@pytest.mark.parametrize(
    "secret", ["", "s3cret", "whsec_", "whsec_c2hvcnQ=", f"{SECRET} whsec_***", SECRET[6:]]
)
def test_a_malformed_secret_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(InvalidSecret, match="VARIABLE") as refused:
        signature.secrets_in("VARIABLE", {"VARIABLE": secret})
    assert not secret or secret not in str(refused.value).replace("whsec_ and", "").replace("whsec_$", "")
