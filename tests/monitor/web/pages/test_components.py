"""Components of pages: times, states, links, pagers, filters; colours of states and stages."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import combinations

import numpy as np
import pytest
from django.template import Context, Template
from django.test import RequestFactory
from numpy.typing import NDArray

from monitor.core.env import ROOT
from monitor.web.charts import stage_shades, svg
from monitor.web.charts.time_range import relative
from monitor.web.pages.http.filter_field import FilterField
from probes import CATEGORIES
from reporters.schedule import find_zone

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
STYLES = (ROOT / "monitor/static/monitor/base.css").read_text(encoding="utf-8")
# Machado, Oliveira, Fernandes (2009), severity 1: normal, protanopia, deuteranopia, tritanopia; linear RGB.
VISIONS = (
    np.eye(3),
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
)
LEAST_DISTANCE = 0.05  # OKLab


def rendered(text: str, query: str = "", **context: object) -> str:
    request = RequestFactory().get(f"/page/?{query}")
    return Template("{% load components %}" + text).render(Context({"request": request, **context}))


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", '12:00:00 <span class="zone"> UTC</span>'),
        ("Europe/Berlin", '13:00:00 <span class="zone">12:00:00 UTC</span>'),
        ("Pacific/Auckland", '2026-03-05 01:00:00 <span class="zone">03-04 12:00:00 UTC</span>'),
    ],
)
def test_a_time_is_that_of_the_reader_with_utc_beside(zone: str, shown: str) -> None:
    text = rendered("{% time when %}", when=NOON, zone=find_zone(zone))
    assert '<time datetime="2026-03-04T12:00:00Z">' in text
    assert shown in text


def test_an_age_that_is_not_current_says_so_in_words() -> None:
    then = NOON - timedelta(days=3)
    assert "stale" not in rendered('{% fresh_age then now "current" %}', then=then, now=NOON)
    stale = rendered('{% fresh_age then now "stale" %}', then=then, now=NOON)
    assert "#icon-stale" in stale
    assert ">stale, <time" in stale.replace("</span>stale", ">stale")
    assert "</span>never seen</span>" in rendered('{% fresh_age None now "never_seen" %}', now=NOON)


def test_the_age_of_a_skipped_slot_of_a_series_without_a_result_says_so() -> None:
    age = rendered('{% fresh_age then now "never_seen" %}', then=NOON - timedelta(minutes=3), now=NOON)
    assert "never" not in age
    assert "</time>, no result yet" in age


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("site ncsa", 'site <a href="/sites/ncsa/" class="site">ncsa</a>'),
        (
            "edge anl \N{RIGHTWARDS ARROW} ncsa",
            'edge <a href="/sites/anl/" class="site">anl</a> \N{RIGHTWARDS ARROW} '
            '<a href="/sites/ncsa/" class="site">ncsa</a>',
        ),
        ("reporter home", 'reporter <a href="/reporters/home/" class="reporter">home</a>'),
        ("place unknown", "place unknown"),
        ("", ""),
    ],
)
def test_the_names_in_a_part_of_the_grid_lead_to_their_pages(part: str, shown: str) -> None:
    assert rendered("{{ part|part_links }}", part=part) == shown


def test_a_resource_leads_to_its_page_if_its_site_is_known() -> None:
    text = "{% resource_link name sites %}"
    link = '<a class="resource" href="/sites/ncsa/resources/ncsa-login/">ncsa-login</a>'
    assert rendered(text, name="ncsa-login", sites={"ncsa-login": "ncsa"}) == link
    assert rendered(text, name="<gone>", sites={"ncsa-login": "ncsa"}) == "&lt;gone&gt;"


def test_links_and_pickers_keep_the_range_and_the_filters_of_the_page() -> None:
    day = relative("24h", NOON)
    assert 'href="/series/a/?range=24h"' in rendered('{% series_link "a" %}', time_range=day)
    assert 'href="/series/a/"' in rendered('{% series_link "a" %}')
    picker = rendered("{% range_picker time_range %}", "range=24h&site=ncsa&page=3", time_range=day)
    assert '<a href="?site=ncsa&amp;range=7d">7 days</a>' in picker
    assert '<a href="?site=ncsa&amp;range=24h" aria-current="true">24 hours</a>' in picker
    assert '<input type="hidden" name="site" value="ncsa">' in picker
    pager = rendered("{% pager 2 3 %}", "site=ncsa&page=2&seen=abc")
    assert 'href="?site=ncsa&amp;page=1" rel="prev"' in pager
    assert 'href="?site=ncsa&amp;page=3" rel="next"' in pager


def test_a_filter_form_keeps_other_parameters_and_can_be_cleared() -> None:
    fields = [FilterField("site", "Site", "<ncsa>"), FilterField("state", "State", "", (("", "any"),))]
    form = rendered('{% filter_form fields "Filter" %}', "range=7d&site=x&page=2", fields=fields)
    assert '<input type="hidden" name="range" value="7d">' in form
    assert 'value="&lt;ncsa&gt;"' in form
    assert '<a href="?range=7d">Clear filters</a>' in form


def test_a_sorted_column_says_so_and_turns_round() -> None:
    head = '{% sort_header "Duration" "seconds" order "number" %}'
    assert 'aria-sort="none"><a href="?order=seconds">' in rendered(head, order="name")
    assert 'aria-sort="ascending"><a href="?order=-seconds">' in rendered(head, order="seconds")
    assert 'aria-sort="descending"><a href="?order=seconds">' in rendered(head, order="-seconds")


def test_a_sparkline_keeps_the_extremes_and_describes_itself() -> None:
    values = [1.0] * 5000
    values[1234], values[4321] = 99.0, -3.0
    kept = svg.extremes(values, 160)
    assert len(kept) <= 160
    assert {99.0, -3.0} <= set(kept)
    assert 'aria-label="Total: -3.0 s to 99.0 s, newest 1.0 s"' in rendered(
        '{% sparkline values "Total" %}', values=values
    )


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("category", [*CATEGORIES, stage_shades.OTHER])
def test_stages_of_a_category_can_be_told_apart_on_both_backgrounds(category: str, theme: int) -> None:
    colours = [linear(theme, f"c-{category}-{shade}") for shade in range(1, stage_shades.SHADES + 1)]
    for background in ("paper", "surface"):
        assert min(contrast(colour, linear(theme, background)) for colour in colours) >= 3
    for vision in VISIONS:
        seen = [oklab(np.clip(np.asarray(vision) @ colour, 0, 1)) for colour in colours]
        assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) >= LEAST_DISTANCE


@pytest.mark.parametrize("theme", [0, 1])
def test_text_has_enough_contrast(theme: int) -> None:
    for name in (
        "ink",
        "muted",
        "link",
        "s-passed",
        "s-failed",
        "s-timed_out",
        "s-broken",
        "s-stale",
        "forecast",
    ):
        for background in ("paper", "surface"):
            assert contrast(linear(theme, name), linear(theme, background)) >= 4.5, (name, background)


def linear(theme: int, name: str) -> NDArray[np.float64]:
    """Return the colour of a custom property in the light (0) or dark (1) theme, as linear RGB."""
    pair = re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", STYLES)
    assert pair is not None, name
    parts = np.array([int(pair[theme + 1][at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the contrast of two colours as WCAG 2 defines it, 1 to 21."""
    lower, higher = sorted(float(colour @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (higher + 0.05) / (lower + 0.05)


def oklab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    cones = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ rgb
    )
    return np.asarray(
        np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        )
        @ cones
    )
