"""Numbers as the tables of performance show them."""

from __future__ import annotations

import pytest

from monitor.analysis.performance.tables import UNDEFINED, percent_text


@pytest.mark.parametrize(
    ("share", "text"), [(None, UNDEFINED), (0.5, "50.0 %"), (-0.027, "-2.7 %"), (-0.0004, "0.0 %")]
)
def test_a_share_that_rounds_to_zero_has_no_sign(share: float | None, text: str) -> None:
    assert percent_text(share) == text
