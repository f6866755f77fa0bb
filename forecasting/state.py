"""Save the state of a forecaster as bytes and load it, each in microseconds; forecasts stay equal.

A state is the typed fields of dataclasses, so a new method needs no code to be stored. The bytes start with
the fingerprint of the class, which covers the fields and versions (``VERSION``, by default 1) of all classes
that the class always contains. Methods that are chosen by name (``MethodsByName``) are stored with
fingerprints of their own. So a state depends on the methods that it uses, not on other methods in the folder.

A state is trusted as much as the depot that stores it: the types of its fields are checked, not the values.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import UserDict, deque
from collections.abc import Iterable
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from forecasting import methods
from forecasting.base import ForecastMethod, OutdatedState
from forecasting.memo import Memo

FORMAT = 1
_SIZE = 8  # of a fingerprint

T = TypeVar("T")


class MethodsByName(UserDict[str, ForecastMethod]):
    """Methods by the names of their files; each method is stored with its own fingerprint."""


def fingerprint(kind: type) -> bytes:
    """Return eight bytes that change if *kind*, or a class that *kind* always contains, changes.

    The bytes depend on the fields, on ``VERSION`` and, for a method, on its number of expert forecasts.
    """
    if kind not in _fingerprints:
        description: dict[str, object] = {}
        _describe(kind, description)
        text = repr((FORMAT, sorted(description.items())))
        _fingerprints[kind] = hashlib.sha256(text.encode()).digest()[:_SIZE]
    return _fingerprints[kind]


_fingerprints: dict[type, bytes] = {}


def _describe(kind: Any, description: dict[str, object]) -> None:
    """Add the version and the fields of *kind*, and of the classes that it contains, to *description*."""
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in description:
            return
        hints = get_type_hints(kind)
        fields = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
        expert = (kind.EXPERT, kind.EXPERT_FORECASTS) if hasattr(kind, "EXPERT") else None
        description[name] = getattr(kind, "VERSION", 1), expert, sorted(fields)
        for field in fields:
            _describe(hints[field], description)
    for part in get_args(kind):
        _describe(part, description)


def versions(kind: type, method_names: Iterable[str] = ()) -> bytes:
    """Return the fingerprints of *kind* and of *method_names*, the methods that a state of *kind* uses."""
    used = {fingerprint(kind), *(fingerprint(methods.load(name)) for name in method_names)}
    return b"".join(sorted(used))


def is_current(kind: type, kept_versions: bytes) -> bool:
    """Return whether a state of *kind* can be loaded.

    *kept_versions* is the result of ``versions`` at the time when the state was stored.
    """
    used = {kept_versions[at : at + _SIZE] for at in range(0, len(kept_versions), _SIZE)}
    current = {fingerprint(methods.load(name)) for name in methods.names()}
    return fingerprint(kind) in used and used <= {fingerprint(kind), *current}


def dump(whole: object) -> bytes:
    """Return the state of *whole*, an instance of a dataclass, as bytes."""
    return fingerprint(type(whole)) + _encoder.encode(whole)


def load(kind: type[T], state: bytes | memoryview) -> T:
    """Return the instance of *kind* that ``dump`` saved as *state*.

    Raises:
        OutdatedState: a class that *state* uses has changed since ``dump``, or *state* is not a state of
            *kind*.
    """
    view = memoryview(state)
    if view[:_SIZE] != fingerprint(kind):
        raise OutdatedState(
            f"a state of {len(view)} bytes was saved by another version of {kind.__qualname__}"
        )
    try:
        whole: T = _decoder(kind).decode(view[_SIZE:])
    except (msgspec.MsgspecError, ValueError, TypeError, LookupError) as error:
        reason = f"cannot be read as {kind.__name__}: {error}"
        raise OutdatedState(f"a state of {len(view)} bytes {reason}") from error
    return whole


def _encoded(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, deque):
        return list(value)
    if isinstance(value, MethodsByName):
        return {name: dump(method) for name, method in value.items()}
    if isinstance(value, Memo):
        return None
    raise NotImplementedError(f"a {type(value).__name__} cannot be saved in a state")


def _decoded(kind: type, value: Any) -> object:
    if kind is MethodsByName:
        return MethodsByName({name: load(methods.load(name), state) for name, state in value.items()})
    if get_origin(kind) is np.ndarray:
        dtype, shape, numbers = value
        return np.frombuffer(numbers, dtype=dtype).reshape(shape).copy()  # writable
    if (get_origin(kind) or kind) is deque:
        return deque(value)
    if (get_origin(kind) or kind) is Memo:
        return Memo()
    raise NotImplementedError(f"a {kind} cannot be saved in a state")


_encoder = msgspec.msgpack.Encoder(enc_hook=_encoded)


_decoders: dict[type, msgspec.msgpack.Decoder[Any]] = {}


def _decoder(kind: type) -> msgspec.msgpack.Decoder[Any]:
    if kind not in _decoders:
        _decoders[kind] = msgspec.msgpack.Decoder(kind, dec_hook=_decoded)
    return _decoders[kind]
