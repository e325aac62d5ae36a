"""The pages' scripts are found by their manifest. Pages work without them. A build fails without them unless it may miss them."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from hatch_build import ASSETS, REQUIRE, find_assets, missing_assets
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


@pytest.fixture
def bundler(tmp_path, monkeypatch):
    """A checkout whose `.ci/web` is what the test says; no release."""
    monkeypatch.delenv(REQUIRE, raising=False)
    (tmp_path / ".ci").mkdir()
    return (tmp_path / ".ci" / "web").write_text


def test_a_build_makes_the_bundles_that_are_missing(tmp_path, bundler):
    bundler("".join(f"mkdir -p $(dirname {path}); touch {path}; " for path in ASSETS))
    warned = []
    find_assets(tmp_path, warned.append)
    assert (missing_assets(tmp_path), warned) == ([], [])


def test_a_build_that_cannot_make_them_goes_on_and_says_why(tmp_path, bundler):
    bundler("echo first >&2; echo no registry >&2; exit 1")
    warned = []
    find_assets(tmp_path, warned.append)
    (said,) = warned
    assert "no registry): going on without them" in said
    assert ASSETS[0] in said


def test_a_build_without_a_checkout_goes_on(tmp_path, monkeypatch):
    monkeypatch.delenv(REQUIRE, raising=False)
    warned = []
    find_assets(tmp_path, warned.append)
    assert "this is no checkout" in warned[0]


def test_a_release_is_not_built_without_them(tmp_path, bundler, monkeypatch):
    bundler("exit 3")
    monkeypatch.setenv(REQUIRE, "assets")
    with pytest.raises(RuntimeError, match=r"exit status 3\): run `make web` first"):
        find_assets(tmp_path, pytest.fail)
    monkeypatch.setenv(REQUIRE, "aseets")
    with pytest.raises(RuntimeError, match="it is `assets`, or not set"):
        find_assets(tmp_path, pytest.fail)


def test_the_image_is_a_release():
    assert f"ENV {REQUIRE}=assets\n" in (ROOT / "Dockerfile").read_text()


def test_the_bundler_without_an_environment_takes_no_node_from_a_package(tmp_path):
    (tmp_path / "sh").symlink_to(shutil.which("sh"))
    done = subprocess.run(["sh", ".ci/web"], cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "no Node.js 20.19 or newer with npm on the path\n")


def test_npm_packages_are_pinned_exactly_and_the_lock_names_no_host():
    web = ROOT / "service" / "dashboard" / "web"
    package = json.loads((web / "package.json").read_text("utf-8"))
    assert len(package["dependencies"]) <= 6
    for version in (package["dependencies"] | package["devDependencies"]).values():
        assert version.replace(".", "").isdigit(), version
    assert '"resolved"' not in (web / "package-lock.json").read_text("utf-8")
