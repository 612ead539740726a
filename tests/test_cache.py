"""What is kept between runs: found again, never trusted when damaged, bounded, and cleared."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest

import rssc.io.cache as module
from rssc.footage.footage import Footage
from rssc.io.cache import Cache, CacheConstants, kept, open_cache
from rssc.model import Lens, Tracks
from rssc.pipeline.kept import kept_start, kept_tracks
from rssc.start.start import Start


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("RSSC_CACHE", str(tmp_path / "cache"))
    return open_cache()


class Counted:
    """Makes a value, and counts how often."""

    def __init__(self, value):
        self.value, self.calls = value, 0

    def __call__(self):
        self.calls += 1
        return self.value


def numbers(make, store, inputs=("a", 1.5, None)):
    return kept("numbers", inputs, make, lambda value: {"x": value}, lambda arrays: arrays["x"] + 0.0, store)


def footage_of(value=0):
    images = np.full((4, 6, 8), value, np.uint8)
    return Footage(images, np.arange(4.0), np.arange(4), ("a", "b", "c", "d"))


def tracks_of():
    return Tracks(4, 2, [0, 1, 2, 1, 2], [0, 0, 0, 1, 1], np.random.default_rng(0).normal(size=(5, 2)), np.arange(1, 6))


def test_made_once_for_the_same_inputs(store):
    make = Counted(np.array([0.1, np.nan]))
    for _ in range(3):
        np.testing.assert_array_equal(numbers(make, store), make.value)
    assert make.calls == 1
    for inputs in (("a", 1.5, 0.0), ("b", 1.5, None), (np.zeros(2),), (np.zeros((2, 1)),), (np.zeros(2, np.float32),)):
        numbers(make, store, inputs)
        numbers(make, store, inputs)
    assert make.calls == 6
    numbers(make, None)
    assert make.calls == 7


@pytest.mark.parametrize("how", ["cut", "empty", "noise", "text", "other", "flipped"])
def test_damaged_entries_are_made_again(store, how):
    make = Counted(np.arange(1000.0))
    numbers(make, store)
    (path,) = store.entries()
    data = path.read_bytes()
    if how == "other":
        np.savez(path, y=np.zeros(3))
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes(255 - byte for byte in data[middle : middle + 64]) + data[middle + 64 :]
        damaged = {"cut": data[:-40], "empty": b"", "noise": os.urandom(500), "text": b"hello", "flipped": flipped}
        path.write_bytes(damaged[how])
    np.testing.assert_array_equal(numbers(make, store), make.value)
    assert make.calls == 2
    numbers(make, store)
    assert make.calls == 2


def test_objects_are_never_unpickled(store):
    make = Counted(np.arange(3.0))
    numbers(make, store)
    (path,) = store.entries()
    np.savez(path, x=np.array([print], dtype=object), allow_pickle=True)
    np.testing.assert_array_equal(numbers(make, store), make.value)
    assert make.calls == 2


def test_the_least_used_go_first(store, monkeypatch):
    rng = np.random.default_rng(0)
    for i in range(4):
        numbers(Counted(rng.normal(size=1000)), store, (float(i),))
        os.utime(store.entries()[-1], (i, i))
    size = store.size // 4
    numbers(Counted(None), store, (0.0,))  # used again: now the latest
    monkeypatch.setattr(module, "CACHE", CacheConstants(limit_bytes=3 * size + size // 2))
    numbers(Counted(rng.normal(size=1000)), store, (4.0,))
    assert store.size <= 3.5 * size
    kept_one, gone = Counted(rng.normal(size=1000)), Counted(rng.normal(size=1000))
    numbers(kept_one, store, (0.0,))
    numbers(gone, store, (1.0,))
    assert (kept_one.calls, gone.calls) == (0, 1)


def test_only_files_of_ours_are_cleared(store):
    numbers(Counted(np.zeros(3)), store)
    mine, unfinished = store.folder / "mine.npz", store.folder / "rssc-tracks-1.99.part"
    mine.write_bytes(b"mine")
    unfinished.write_bytes(b"half")
    assert store.clear() == 1
    assert [path.name for path in store.folder.iterdir()] == ["mine.npz"]


def test_where_nothing_can_be_kept_the_work_is_done(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    make = Counted(np.zeros(3))
    for _ in range(2):
        numbers(make, Cache(tmp_path / "file" / "cache"))
    assert make.calls == 2
    monkeypatch.setenv("RSSC_CACHE", "")
    assert open_cache() is None


def test_tracks_and_starts_come_back_as_they_were(store):
    tracks = Counted(tracks_of())
    assert kept_tracks(tracks, footage_of(), True) == kept_tracks(tracks, footage_of(), True) == tracks.value
    assert tracks.calls == 1
    kept_tracks(tracks, footage_of(1), True)
    kept_tracks(tracks, footage_of(), False)
    assert tracks.calls == 3
    lens = Lens("radial", 500.0, 501.0, 320.0, 0.1, (0.1, 1e-17))
    start = Start(lens, np.random.default_rng(1).normal(size=(4, 3, 4)), np.array([True, False, True, True]),
                  ("a note",), "global", 0.5, "columns", parallax_deg=2.5)  # fmt: skip
    made = Counted(start)
    fractions = {"rows": np.linspace(0, 1, 5), "columns": np.linspace(0, 0.5, 5)}
    for _ in range(2):
        found = kept_start(made, tracks.value, (8, 6), None, fractions, np.arange(4.0), True)
    assert made.calls == 1
    before, after = asdict(start), asdict(found)
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_equal(after[name], value)
    kept_start(made, tracks.value, (8, 6), "fisheye", fractions, np.arange(4.0), True)
    assert made.calls == 2


def test_the_command_shows_and_clears(store):
    numbers(Counted(np.zeros(3)), store)
    command = [sys.executable, "-m", "rssc", "cache", "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert found["entries"] == 1 and found["bytes"] == store.size and found["folder"] == str(store.folder)
    assert json.loads(subprocess.run([*command, "--clear"], capture_output=True, check=True).stdout)["removed"] == 1
    assert store.entries() == []
    words = subprocess.run([*command[:-1]], capture_output=True, text=True, check=True).stdout
    assert words == f"{store.folder}: 0 entries, 0.0 of 500 MB\n"
