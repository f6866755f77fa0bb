from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reporters.remote.policy.locate import TextPosition, position_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the path of each entry of *value* and the entry: a key, or a value of a list."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield (step,), step if isinstance(step, str) else item
        for path, inner in places(item):
            yield (step, *path), inner


@given(values, st.sampled_from([None, 0, 2]), st.booleans())
def test_a_position_is_where_the_entry_begins(document: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    lines = text.split("\n")
    for path, entry in places(document):
        position = position_of(text, path)
        assert position is not None
        rest = "\n".join([lines[position.line - 1][position.column - 1 :], *lines[position.line :]])
        assert json.JSONDecoder().raw_decode(rest)[0] == entry


def test_a_path_that_leads_nowhere_has_no_position() -> None:
    assert position_of('{"a": [1]}', ("a", 1)) is None
    assert position_of('{"a": [1]}', ("b",)) is None
    assert position_of('{"a": 1}', ("a", "b")) is None
    assert position_of('{"a": 1}', (0,)) is None
    assert position_of('{"a": 1}', ()) == TextPosition(1, 1)
