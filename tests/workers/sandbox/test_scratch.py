"""Private folders are removed whole, and nothing beside them."""

import os
from pathlib import Path

import pytest

from workers.sandbox.process.scratch import PREFIX, Scratch, remove_tree, sweep_dead_roots


@pytest.fixture
def parent(tmp_path: Path):
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_what_links_point_at_stays(tmp_path: Path, parent: int):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    run = tmp_path / "1"
    run.mkdir()
    (run / "link").symlink_to(kept)
    (run / "file-link").symlink_to(kept / "file")
    remove_tree(parent, "1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert (kept / "file").exists()


def test_a_link_in_place_of_the_folder_goes_and_its_target_stays(tmp_path: Path, parent: int):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tmp_path / "1").symlink_to(kept)
    remove_tree(parent, "1")
    assert not (tmp_path / "1").is_symlink()
    assert (kept / "file").exists()


def test_a_tree_deeper_than_any_path_and_any_stack_goes(tmp_path: Path, parent: int):
    here = os.open(tmp_path, os.O_RDONLY)
    for n in range(3000):
        name = "1" if n == 0 else "d" * 20
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(parent, "1")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_forbid_it_go_too(tmp_path: Path, parent: int):
    (tmp_path / "1" / "a" / "b").mkdir(parents=True)
    (tmp_path / "1" / "a" / "b").chmod(0)
    (tmp_path / "1" / "a").chmod(0)
    remove_tree(parent, "1")
    assert list(tmp_path.iterdir()) == []


def test_roots_are_swept_when_their_zygote_is_dead_and_only_then(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    alive = Scratch()
    alive.make(1)
    dead = tmp_path / f"{PREFIX}dead"
    (dead / "7" / "below").mkdir(parents=True)
    (tmp_path / f"{PREFIX}link").symlink_to("/etc")
    sweep_dead_roots()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([Path(alive.path).name, f"{PREFIX}link"])
    assert (Path(alive.path) / "1").is_dir()
    alive.close()
    assert not Path(alive.path).exists()


def test_a_used_folder_is_left_to_the_sweeper(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch = Scratch()
    Path(scratch.make(1)).joinpath("file").touch()
    scratch.make(2)
    assert not scratch.remove_empty(1)
    assert scratch.remove_empty(2)
    scratch.sweep(1)
    assert list(Path(scratch.path).iterdir()) == []
    scratch.close()
