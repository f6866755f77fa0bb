"""The signatures that gridcast ships: the files in this folder.

Every Celery worker reads them, so they are read without ``loading``, whose checks need pydantic; a test
checks them with ``loading``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from monitor.analysis.signatures.signature import Signature

FOLDER = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def shipped() -> tuple[Signature, ...]:
    """Return the shipped signatures, in the order of the names of files and of each file."""
    documents = [yaml.load(file.read_bytes(), _LOADER) for file in sorted(FOLDER.glob("*.yaml"))]  # noqa: S506
    return tuple(Signature.of(name, entry) for document in documents for name, entry in document.items())


@cache
def shipped_names() -> frozenset[str]:
    return frozenset(signature.name for signature in shipped())
