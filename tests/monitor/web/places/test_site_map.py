"""The map of sites: links between sites and their projection."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from monitor.models import Series
from monitor.web.charts.map_svg import WIDTH, DrawnLink, Place, draw_map, frame_of
from monitor.web.charts.world import outlines
from monitor.web.places.site_map import site_map
from tests.monitor.web.pages import builders

SDSC, NCSA = Place("sdsc", 32.9, -117.2, "up", "up", "/1"), Place("ncsa<", 40.1, -88.2, "down", "down", "/2")


@pytest.mark.parametrize(
    ("longitude", "latitude", "is_land"),
    [(-88, 40, True), (10, 50, True), (134, -25, True), (-40, 40, False), (51, 42, False)],
)
def test_the_outlines_surround_land_without_its_seas(
    longitude: float, latitude: float, is_land: bool
) -> None:
    crossed = 0
    for ring in (each.points for each in outlines() if each.is_land):
        for (x, y), (next_x, next_y) in zip(ring, [*ring[1:], ring[0]], strict=True):
            if (y > latitude) != (next_y > latitude):
                crossed += longitude < x + (latitude - y) / (next_y - y) * (next_x - x)
    assert crossed % 2 == is_land


@pytest.mark.django_db
def test_links_are_pairs_of_sites_of_a_series_with_the_failing_first() -> None:
    now = timezone.now()
    ada = User.objects.create(username="ada", is_superuser=True)
    resources = builders.sites(4)
    builders.circle("ring", resources[:3])
    pair = builders.circle("pair", resources[2:])
    sent = builders.report(pair, now - timedelta(minutes=1))
    builders.delivered(builders.failed(sent, "transfer_ring", "site4-login", "refused"))
    links = [(each.first, each.second, each.series_count, each.failing) for each in site_map(ada, now).links]
    assert links == [
        ("site3", "site4", 1, 1),
        ("site1", "site2", 1, 0),
        ("site1", "site3", 1, 0),
        ("site2", "site3", 1, 0),
    ]
    Series.objects.all().delete()
    assert site_map(ada, now).links == []


def test_every_place_lies_within_the_frame_and_names_are_escaped() -> None:
    for places in ([SDSC], [SDSC, NCSA], []):
        frame = frame_of(places)
        for place in places:
            x, y = frame.point(place.latitude, place.longitude)
            assert 0 < x < WIDTH
            assert 0 < y < frame.height
    drawn = draw_map(
        [SDSC, NCSA],
        [DrawnLink("sdsc", "ncsa<", is_failing=True), DrawnLink("sdsc", "gone", is_failing=True)],
    )
    assert drawn.count("l-failing") == 1
    assert "100\N{DEGREE SIGN} W" in drawn
    assert "ncsa<" not in drawn


def test_the_labels_of_neighbours_cover_neither_each_other_nor_a_mark() -> None:
    close = [Place(f"site{number}", 40.0 + number, -100.0, "up", "up", f"/{number}") for number in range(3)]
    far = Place("far", 20.0, -60.0, "up", "up", "/far")
    drawn = draw_map([*close, far], [])
    for screen in ("wide", "narrow"):
        anchors = re.findall(rf'<text class="{screen}"[^>]*text-anchor="(\w+)">(site\d)', drawn)
        assert sorted(name for _, name in anchors) == ["site0", "site1", "site2"]
        assert {anchor for anchor, _ in anchors} != {"middle"}  # some stand beside their marks


def test_where_not_every_label_has_room_sites_that_are_down_have_theirs() -> None:
    kinds = {"site0": "up", "site1": "up", "site2": "down", "site3": "up"}
    crowd = [Place(name, 40.0, -100.0, kind, kind, f"/{name}") for name, kind in kinds.items()]
    far = Place("far", 20.0, -60.0, "up", "up", "/far")
    drawn = draw_map([*crowd, far], [])
    assert drawn.count("<circle") == 5
    labelled = re.findall(r'<text class="narrow"[^>]*>(site\d)', drawn)
    assert "site2" in labelled
    assert len(labelled) < 4
