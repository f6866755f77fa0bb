"""Ways to sign and to verify: one file each, with a class ``Method``. The folder is the registry.

The reporter has no cryptography of its own: each method runs a program of the site. docs/reporter-protocol.md
has the formats of keys and signatures.

Errors::

    SigningError
    |-- SigningUnavailable   the program is missing, or cannot do what is needed here
    |-- MalformedKey           a public key is malformed, or of another type than expected
    `-- InvalidSignature     the signature is not that of the key, the purpose and the document
"""

from __future__ import annotations

from reporters.registry import PluginRegistry
from reporters.remote.errors import UsageFault
from reporters.remote.signing.base import (
    InvalidSignature,
    SigningError,
    SigningMethod,
    SigningUnavailable,
    work_directory,
)

ENROLMENT = "gridcast enrolment 1"
TOKEN = "gridcast token 1"  # noqa: S105  # a purpose, not a secret
ASSIGNMENT = "gridcast assignment 1"
RECEIPT = "gridcast receipt 1"

_ORDER = ("openssl", "ssh")  # openssl first: it is older at most sites
_registry = PluginRegistry[type[SigningMethod]](
    __name__, __path__, "Method", noun="signing method", error=UsageFault, shared=("base",)
)
names = _registry.names


def load(name: str) -> SigningMethod:
    """Return the signing method *name*. Raises UsageFault for an unknown name."""
    return _registry.load(name)()


def choose() -> tuple[str, SigningMethod]:
    """Return the name and the first of the methods that work on this host.

    Raises:
        SigningUnavailable: none works; the message has the reason for each.
    """
    reasons = []
    for name in sorted(names(), key=lambda name: (name not in _ORDER, name)):
        method = load(name)
        try:
            try_out(method)
        except SigningError as error:
            reasons.append(f"{name}: {error}")
        else:
            return name, method
    raise SigningUnavailable(f"no program of this host can sign: {'; '.join(reasons)}")


def try_out(method: SigningMethod) -> None:
    """Make a key, sign and verify with *method*, in a temporary directory.

    Raises:
        SigningError: *method* does not work on this host. An old OpenSSH or an OpenSSL without P-256 shows
            itself only when it is used.
    """
    with work_directory() as directory:
        key = directory / "key"
        method.make_key(key)
        signature = method.sign(key, TOKEN, "trial")
        method.verify(method.public_key(key), TOKEN, "trial", signature)
        try:
            method.verify(method.public_key(key), TOKEN, "another", signature)
        except InvalidSignature:
            return
    raise SigningUnavailable("it accepts a signature of another text")
