"""Texts that are repeated are clipped, however deep they lie."""

from __future__ import annotations

from monitor.core.clipping import clipped, clipped_texts, printable


def test_a_longer_text_is_cut_and_says_its_length() -> None:
    assert clipped("abc", 3) == "abc"
    assert clipped("a" * 2000, 3) == "aaa... (2,000 characters)"


def test_texts_within_are_clipped_and_other_values_stay() -> None:
    value = {"a": ["b" * 9, 1, None, {"c" * 101: True}]}
    cut = {"a": ["bbb... (9 characters)", 1, None, {"c" * 100 + "... (101 characters)": True}]}
    assert clipped_texts(value, 3) == cut


def test_foreign_text_is_printed_on_one_line() -> None:
    assert printable("a\r\nb\x1b[2Jä\0\ud800") == "a\\r\\nb\\x1b[2Jä\\x00\\ud800"
    assert printable("x" * 200) == clipped("x" * 200)
