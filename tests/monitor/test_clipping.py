"""Texts that are repeated are clipped, however deep they lie."""

from __future__ import annotations

from monitor.clipping import clipped, clipped_texts


def test_a_longer_text_is_cut_and_says_its_length() -> None:
    assert clipped("abc", 3) == "abc"
    assert clipped("a" * 2000, 3) == "aaa... (2,000 characters)"


def test_texts_within_are_clipped_and_other_values_stay() -> None:
    value = {"a": ["b" * 9, 1, None, {"c" * 101: True}]}
    cut = {"a": ["bbb... (9 characters)", 1, None, {"c" * 100 + "... (101 characters)": True}]}
    assert clipped_texts(value, 3) == cut
