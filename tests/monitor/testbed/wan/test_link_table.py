"""Parsing link tables, and the links that they result in."""

from __future__ import annotations

import re

import pytest

from monitor.testbed.wan.links import (
    BadLinkTable,
    LinkProperties,
    LinkTable,
    TableLine,
    format_lines,
    link_line,
    parse_lines,
)

SITES = ("anl", "iu", "hub")


def table(text: str) -> LinkTable:
    return LinkTable.of(SITES, parse_lines(text))


def test_every_ordered_pair_of_sites_has_a_link_of_its_own() -> None:
    links = table("link anl iu delay_ms=20 jitter_ms=2 loss_percent=0.5 rate_mbit=8").links
    assert links["anl", "iu"] == LinkProperties(0.02, 0.002, 0.005, 1_000_000.0)
    assert links["iu", "anl"] == LinkProperties()
    assert len(links) == 6


def test_a_later_line_overrides_only_the_figures_that_it_names() -> None:
    links = table(
        "link * * delay_ms=10 loss_percent=1\nlink anl * loss_percent=0\nlink * iu delay_ms=5"
    ).links
    assert links["anl", "iu"] == LinkProperties(delay_seconds=0.005, loss=0.0)
    assert links["anl", "hub"] == LinkProperties(delay_seconds=0.01, loss=0.0)
    assert links["hub", "anl"] == LinkProperties(delay_seconds=0.01, loss=0.01)


def test_uplinks_and_the_queue_have_lines_of_their_own() -> None:
    network = table(
        "queue bytes=64000  # small\n\n# a comment\nsite * uplink_mbit=8\nsite iu uplink_mbit=0\n"
    )
    assert network.queue_bytes == 64_000
    assert network.uplinks == {"anl": 1_000_000.0, "iu": 0.0, "hub": 1_000_000.0}


def test_formatted_lines_can_be_parsed_again() -> None:
    lines = [
        TableLine("queue", (), {"bytes": 2_000_000}),
        TableLine("site", ("anl",), {"uplink_mbit": 62.5}),
        link_line("anl", "*", delay_ms=None, loss_percent=0.01, rate_mbit=1e-3),
    ]
    assert parse_lines(format_lines(lines)) == lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("link anl iu delay=20", "line 1: unknown 'delay'; 'link' takes delay_ms, jitter_ms"),
        ("\nlink anl iu delay_ms=soon", "line 2: delay_ms: expected a number from 0 on, got 'soon'"),
        ("link anl iu delay_ms=-1", "expected a number from 0 on, got '-1'"),
        ("link anl iu delay_ms=nan", "expected a number from 0 on, got 'nan'"),
        ("link anl iu loss_percent=101", "loss_percent: at most 100, got 101"),
        ("link anl delay_ms=20", "'link' takes 2 names, got 1"),
        ("site anl", "no figure; 'site' takes uplink_mbit"),
        ("bridge anl iu", "unknown kind of line 'bridge'; known are queue, site, link"),
        ("link anl utep delay_ms=1", "there is no site 'utep' in the network; it has anl, iu, hub"),
    ],
)
def test_the_error_about_a_bad_line_names_the_expected_values(text: str, message: str) -> None:
    with pytest.raises(BadLinkTable, match=re.escape(message)):
        table(text)
