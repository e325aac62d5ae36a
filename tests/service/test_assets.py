"""The pages' scripts: found by their manifest, missed without harm by pages, and without mercy by a build."""

from __future__ import annotations

import json

from hatch_build import ASSETS, missing_assets
from service.dashboard.assets import asset
from tests.support.resources import ROOT


def test_an_asset_is_found_by_the_manifest_alone(tmp_path):
    assert asset("pages.js", tmp_path) is None
    (tmp_path / "manifest.json").write_text(json.dumps({"pages.js": "pages-1.js"}))
    assert asset("pages.js", tmp_path) is None
    (tmp_path / "pages-1.js").write_text("")
    assert asset("pages.js", tmp_path) == "dist/pages-1.js"


def test_a_build_misses_each_bundle_by_name(tmp_path):
    assert missing_assets(tmp_path) == list(ASSETS)
    for path in ASSETS:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    assert missing_assets(tmp_path) == []


def test_npm_packages_are_pinned_exactly_and_the_lock_names_no_host():
    web = ROOT / "service" / "dashboard" / "web"
    package = json.loads((web / "package.json").read_text("utf-8"))
    assert len(package["dependencies"]) <= 6
    for version in (package["dependencies"] | package["devDependencies"]).values():
        assert version.replace(".", "").isdigit(), version
    assert '"resolved"' not in (web / "package-lock.json").read_text("utf-8")
