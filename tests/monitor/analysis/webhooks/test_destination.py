"""The URL of a webhook is unambiguous, and shown without its path."""

from __future__ import annotations

import pytest

from monitor.analysis.webhooks.destination import InvalidUrl, parse


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org\\@127.0.0.1/",
        "http://127.0.0.1:80@example.org/",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://①②⑦.⓪.⓪.①/",
        "HTTP://",
        "http:///path",
        "dict://127.0.0.1:6379/",
    ],
)
def test_an_ambiguous_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidUrl, match="expected a URL"):
        parse(url)


def test_the_origin_leaves_out_the_path() -> None:
    assert parse("https://hooks.example.org/t0ken?k=v").origin == "https://hooks.example.org"
    assert parse("http://[::1]:8080/").origin == "http://[::1]:8080"
