"""Files of other projects: they are what their README says; names with a digest."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from django.contrib.staticfiles import finders
from django.templatetags.static import static

from monitor.core.env import ROOT

VENDORED = ROOT / "monitor" / "static" / "vendor"
AXE = Path(__file__).parent / "vendor"


def test_vendored_files_are_those_of_their_readme() -> None:
    rows = re.findall(
        r"^\| `(.+?\.js)` .*`([0-9a-f]{64})` \|$", (VENDORED / "README.md").read_text(), re.MULTILINE
    )
    assert {name: _sha256(VENDORED / name) for name, _ in rows} == dict(rows)
    assert {str(path.relative_to(VENDORED)) for path in VENDORED.rglob("*.js")} == dict(rows).keys()
    assert all((VENDORED / name).with_name("LICENSE").is_file() for name, _ in rows)
    assert _sha256(AXE / "axe.min.js") in (AXE / "README.md").read_text()


def test_the_name_of_a_static_file_has_the_digest_of_its_content() -> None:
    url = static("monitor/base.css")
    assert re.fullmatch(r"/static/monitor/base\.[0-9a-f]{12}\.css", url)
    assert finders.find(url.removeprefix("/static/")) == finders.find("monitor/base.css")
    assert finders.find("monitor/base.000000000000.css") is None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
