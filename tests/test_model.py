"""Values compare as values, although they hold arrays."""

from copy import deepcopy
from dataclasses import fields, replace

import numpy as np
import pytest

from rssc.model import Neighbours, Scene, Tracks, Trajectory
from rssc.model.stretch import Stretch
from tests.builders import make_camera, make_scene, make_stretch


@pytest.fixture(scope="module")
def values():
    """One of each, all different from each other."""
    poses = np.tile(np.eye(3, 4), (8, 1, 1))
    poses[:, 0, 3] = np.linspace(0, 0.1, 8)
    trajectory = Trajectory(poses, -1.0, 1.0)
    neighbours = Neighbours([1, 2], [0, 0], [[0, 1, 2], [1, 2, 3]], np.full((2, 3, 2), 5.0))
    scene = replace(make_scene(make_camera(), trajectory, 4), neighbours=neighbours)
    colours = np.full((len(scene.points), 3), 9, np.uint8)
    stretch = replace(make_stretch(scene), colours=colours, world=0)
    return {
        "trajectory": trajectory, "neighbours": scene.neighbours, "scene": scene, "tracks": scene.tracks,
        "stretch": stretch,
    }  # fmt: skip


KINDS = {"trajectory": Trajectory, "neighbours": Neighbours, "scene": Scene, "tracks": Tracks, "stretch": Stretch}


def changed(value):
    """Something else of the same kind."""
    if isinstance(value, np.ndarray):
        return value[:0] if value.dtype == np.int64 else value + 0.5
    if isinstance(value, tuple):
        return ()
    if isinstance(value, str):
        return value + "'"
    if isinstance(value, int | float):
        return value + 1
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_equal(values, kind):
    value = values[kind]
    assert type(value) is KINDS[kind]
    copy = deepcopy(value)
    assert copy == value
    assert not (copy != value)  # noqa: SIM202 (another operator)
    assert value in [copy]


@pytest.mark.parametrize(("kind", "name"), [(kind, field.name) for kind in KINDS for field in fields(KINDS[kind])])
def test_every_field_counts(values, kind, name):
    value = values[kind]
    other = deepcopy(value)
    # Past the checks of a new value, which need not make sense.
    object.__setattr__(other, name, changed(getattr(value, name)))
    assert other != value
    assert value != other


def test_other_kinds_are_not_equal(values):
    for kind, value in values.items():
        assert value != 3
        assert value is not None and value != None  # noqa: E711
        assert all(value != other for name, other in values.items() if name != kind)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_make_values_unhashable(values, kind):
    with pytest.raises(TypeError, match="unhashable"):
        hash(values[kind])


def test_what_is_not_given_has_defaults(values):
    scene = values["scene"]
    np.testing.assert_array_equal(scene.frame_times, [0, 1, 2, 3])
    np.testing.assert_array_equal(scene.tracks.sigmas, np.ones(len(scene.tracks)))
    assert scene == replace(scene, frame_times=[0.0, 1.0, 2.0, 3.0])
