"""The registry of causes, and the tests that look at the result as a whole."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rssc.model.finding import CAUSES, Finding
from rssc.pipeline.causes import find_impossible_readout, find_steadied
from rssc.pipeline.motion_summary import summarise_motion
from rssc.simulation import simulate_scene

PAGE = Path(__file__).parents[1] / "docs" / "causes.md"


def test_every_cause_has_its_section_on_the_page_with_a_picture_and_what_to_do():
    sections = dict(re.findall(r"^### `(\w+)`.*?\n(.*?)(?=^##|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    assert sorted(sections) == sorted(CAUSES)
    for name, cause in CAUSES.items():
        text = " ".join(sections[name].split())
        assert cause.remedy in text, name
        assert f"](pictures/causes/{name}.png)" in text and (PAGE.parent / f"pictures/causes/{name}.png").exists(), name


def test_a_reason_says_what_was_found_and_what_to_do():
    assert Finding("zoom", "it grows.").reason == "it grows: lock the zoom"
    assert Finding("cut", "the scene changes.").reason == "the scene changes."
    with pytest.raises(AssertionError):
        Finding("weather", "")


def test_steadied_motion_is_told_from_a_hand():
    held = summarise_motion(simulate_scene(4, frame_count=40, point_count=100).truth)
    assert held.fast_turn > 1e-3 and find_steadied([held]) == []
    carried = replace(held, fast_turn=1e-4, fast_travel=4e-4)
    (found,) = find_steadied([carried])
    assert found.cause == "steadied" and "0.10 mrad from rotation, 0.40 from movement" in found.words
    # As many stretches in the hand are enough, and who stands still is told so elsewhere.
    assert find_steadied([carried, held]) == []
    assert find_steadied([carried, carried, held]) == [found]
    assert find_steadied([replace(carried, fast_travel=1e-4)]) == []


def test_readouts_that_no_camera_has_are_questioned():
    assert find_impossible_readout(0.041, 0.0001) == []
    assert find_impossible_readout(0.080, 0.02) == []
    (found,) = find_impossible_readout(-0.080, 0.001)
    assert found.cause == "slow_motion" and "80 ms" in found.words
