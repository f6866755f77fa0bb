"""The cache is in Valkey, and in the memory of the process while Valkey is unreachable."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache, caches

from monitor.core.valkey import PAUSE_SECONDS
from monitor.web.accounts.valkey_cache import ValkeyCache
from tests.waiting import eventually


def cache_at(url: str, **options: Any) -> ValkeyCache:
    return ValkeyCache(url, {"KEY_PREFIX": uuid.uuid4().hex}, **options)


def test_processes_share_values() -> None:
    first, second = (ValkeyCache(settings.CACHES["default"]["LOCATION"], {}) for _ in range(2))
    key = uuid.uuid4().hex
    assert first.add(key, 3, timeout=60)
    assert not second.add(key, 4, timeout=60)
    assert second.incr(key) == 4
    assert first.get(key) == 4
    assert second.delete(key)
    assert not first.has_key(key)


def test_values_expire() -> None:
    key = uuid.uuid4().hex
    cache.set(key, {"json": ["only"]}, timeout=1)
    assert cache.get(key) == {"json": ["only"]}
    assert cache.touch(key, timeout=1)
    assert eventually(lambda: not cache.has_key(key))


def test_without_valkey_values_are_kept_in_the_process(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    lonely = cache_at(f"redis+socket://{tmp_path}/nothing.sock")
    with caplog.at_level(logging.WARNING):
        assert [lonely.add("code", value=True, timeout=60) for _ in range(3)] == [True, False, False]
    assert caplog.text.count("Valkey is unreachable") == 1, (
        "it is asked once in some seconds, and waits for none"
    )


def test_valkey_is_used_again_when_it_answers() -> None:
    now = [0.0]
    returning = cache_at("redis://127.0.0.1:1/0", steady=lambda: now[0])
    returning.set("key", "kept here", timeout=60)
    assert returning.get("key") == "kept here"
    shared = ValkeyCache(settings.CACHES["default"]["LOCATION"], {})
    returning._valkey = shared._valkey
    assert returning.get("key") == "kept here", "not before the pause is over"
    now[0] += PAUSE_SECONDS
    assert returning.get("key") is None


def test_other_values_push_none_out_of_memory(tmp_path: Path) -> None:
    lonely = cache_at(f"redis+socket://{tmp_path}/nothing.sock")
    lonely.add("code", value=True, timeout=60)
    for number in range(1_000):
        lonely.add(f"other-{number}", 0, timeout=60)
    assert lonely.has_key("code")


def test_clearing_the_cache_leaves_the_broker_alone() -> None:
    key = uuid.uuid4().hex
    caches["default"].set(key, 1, timeout=60)
    caches["default"].clear()
    assert caches["default"].get(key) == 1
