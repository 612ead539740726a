"""Choice of the readout axis."""

from dataclasses import replace

import pytest

from rssc.inference.choices import CHOICES, try_axes
from rssc.inference.infer import infer
from rssc.model import Camera, Lens, Shutter
from rssc.simulation import simulate_scene
from rssc.solver.problem import with_trajectory

READOUT = 0.03


@pytest.fixture(scope="module")
def near_global():
    camera = Camera(640, 480, Lens("radial", 500, 500, 320, 240, (-0.05, 0.01)), Shutter(0.0))
    return simulate_scene(
        4, frame_count=25, point_count=200, camera=camera, readout_ratio=READOUT, pixel_noise=0.05
    ).scene


@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_near_a_global_shutter_the_axis_is_looked_at_again(near_global, axis):
    """Rough tracks once took a short readout along the rows for none along the columns."""
    start = replace(near_global, camera=replace(near_global.camera, shutter=Shutter(0.0, axis)))
    found = infer(with_trajectory(start), lens="radial", rough=False)
    shutter = found.adjustment.scene.camera.shutter
    assert shutter.axis == "rows"
    assert abs(shutter.readout_ratio - READOUT) < 4 * found.covariance.sigma("readout_ratio") < 0.02
    assert [one.name for one in found.shutters] == ["rows", "columns"]


def test_a_long_readout_has_no_other_axis(near_global):
    found = infer(with_trajectory(near_global), lens="radial", rough=False).adjustment
    camera = found.scene.camera.with_readout_ratio(2 * CHOICES.near_global)
    assert try_axes(replace(found, scene=replace(found.scene, camera=camera))) == ()
