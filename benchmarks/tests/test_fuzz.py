"""Readers of damaged files raise nothing but errors of ours; `python -m benchmarks fuzz` tries for longer."""

import random
from dataclasses import replace

import pytest

from benchmarks import fuzz, fuzz_readers
from benchmarks.fuzz_reader import Cases, changed
from benchmarks.fuzz_reader import fuzz as fuzz_here
from benchmarks.fuzz_readers import READERS

IN_PYTHON = [name for name in READERS if "COLMAP" not in name and "video" not in name]
"""Readers that are safe and quick enough to run within this process."""


@pytest.mark.parametrize("name", IN_PYTHON)
def test_only_errors_of_ours(name, tmp_path):
    found = fuzz_here(name, random.Random(name).randrange(1000), 0.2, tmp_path)
    assert not found["failure"], found["failure"]
    assert found["cases"] >= 100


@pytest.mark.parametrize("name", ["COLMAP model", "MP4 video"])
def test_processes_neither_end_nor_hang(name):
    found = fuzz.run_reader(name, 1, 0.1, cases_at_once=4)
    assert not (found.failure or found.crash or found.hang), found
    assert found.cases >= 4


def test_changes_are_those_that_are_named():
    assert changed(b"abcdef", [("replace", 0.5, b"X")]) == b"abcXef"
    assert changed(b"abcdef", [("insert", 0.5, b"X")]) == b"abcXdef"
    assert changed(b"abcdef", [("delete", 0.5, b"XY")]) == b"abcf"
    assert changed(b"abcdef", [("cut", 0.5, b"X")]) == b"abc"
    assert changed(b"abcdef", [("flip", 0.0, b"\x01")]) == b"`bcdef"


def test_other_errors_are_found(tmp_path, monkeypatch):
    def read(folder):
        if (folder / "target.yaml").read_bytes() != fuzz_readers._TARGET.encode():
            raise KeyError("not ours")

    monkeypatch.setitem(READERS, "target YAML", replace(READERS["target YAML"], read=read))
    assert "KeyError" in fuzz_here("target YAML", 0, 0.1, tmp_path)["failure"]
    cases = Cases(READERS["target YAML"], tmp_path)
    with pytest.raises(KeyError):
        cases.run("target.yaml", 0, [("cut", 0.0, b"X")])
