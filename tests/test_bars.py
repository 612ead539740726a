"""Black bars: the camera of the whole image reads the picture's rows at the times of the camera of the picture."""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

from rssc.errors import InputError, NotCalibratableError
from rssc.footage.footage import Cropped, Footage
from rssc.io.camera_file import camera_document, read_truth
from rssc.io.reference_file import read_reference
from rssc.model import Trajectory
from rssc.model.calibration import Calibration
from rssc.model.camera import ActiveArea, Camera
from rssc.outputs.exporters import EXPORTERS, ExportOptions, export_files
from rssc.outputs.rectify import Rectifier, RectifyOptions
from rssc.pipeline.bars import in_whole_image
from rssc.pipeline.result import degenerate_result
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.truth import true_scene
from tests.builders import INTERVAL_S, make_calibration, make_camera, make_scene, make_stretch

AREA = ActiveArea(10, 45, 480, 270)
CROPPED = Cropped(500, 360, AREA)
OFFSET = np.array([AREA.left, AREA.top])


@pytest.fixture(scope="module", params=["top_to_bottom", "bottom_to_top", "left_to_right"])
def picture(request):
    """A calibration of the picture without its bars."""
    camera = make_camera("radial", 480, 270, readout_ratio=0.62, direction=request.param)
    rng = np.random.default_rng(0)
    poses = np.tile(np.eye(3, 4), (14, 1, 1))
    poses[:, :, 3] = np.cumsum(rng.normal(0, 0.02, (14, 3)), axis=0)
    scene = make_scene(camera, Trajectory(poses, -2.0, 1.0), 8)
    return make_calibration(camera, [make_stretch(scene)])


def test_rows_keep_their_times_and_points_their_pixels(picture):
    whole = in_whole_image(picture, CROPPED)
    assert whole.camera.active == AREA and (whole.camera.width, whole.camera.height) == (500, 360)
    assert whole.camera.shutter == picture.camera.shutter
    assert whole.readout_time_s == pytest.approx(0.62 * INTERVAL_S)
    before, after = picture.stretches[0].scene, whole.stretches[0].scene
    frames, pixels = before.tracks.frames, before.tracks.pixels
    np.testing.assert_allclose(after.tracks.pixels, pixels + OFFSET)
    np.testing.assert_allclose(after.row_times(pixels + OFFSET, frames), before.row_times(pixels, frames))
    rays = before.camera.lens.unproject(pixels)
    np.testing.assert_allclose(after.camera.lens.project(rays), pixels + OFFSET, atol=1e-9)
    told = after.camera.shutter.axis
    over_all = 0.62e3 * INTERVAL_S * {"rows": 360 / 270, "columns": 500 / 480}[told]
    assert f"{over_all:.2f} ms" in whole.notes[-1] and "20.67 ms" in whole.notes[-1]
    assert in_whole_image(picture, None) is picture


def test_over_the_whole_image_rows_keep_their_times(picture):
    stretch = in_whole_image(picture, CROPPED).stretches[0]
    whole = stretch.over_whole_image(INTERVAL_S)
    assert whole.scene.camera.active is None
    frames, pixels = stretch.scene.tracks.frames, stretch.scene.tracks.pixels
    np.testing.assert_allclose(whole.scene.row_times(pixels, frames), stretch.scene.row_times(pixels, frames))
    shift = whole.scene.frame_times - stretch.scene.frame_times
    np.testing.assert_allclose(whole.times_s - stretch.times_s, shift * INTERVAL_S)


def test_files_keep_the_area(picture, tmp_path):
    whole = in_whole_image(picture, CROPPED)
    whole.save(tmp_path / "calibration.json")
    loaded = Calibration.load(tmp_path / "calibration.json")
    assert loaded.camera == whole.camera
    assert loaded.stretches[0].scene.camera == whole.stretches[0].scene.camera
    document = json.loads((tmp_path / "calibration.json").read_text())
    assert document["shutter"]["line_delay_s"] == pytest.approx(0.62 * INTERVAL_S / whole.camera.line_count)
    assert read_truth(tmp_path / "calibration.json")[0] == whole.camera
    assert "active" not in camera_document(picture.camera, 1.0)["image"]


def test_tools_are_told_of_all_rows(picture, tmp_path):
    if picture.camera.shutter.direction != "top_to_bottom":
        pytest.skip("not all formats hold other directions")
    whole = in_whole_image(picture, CROPPED)
    profile = json.loads(export_files(whole, "gyroflow")["gyroflow_lens_profile.json"])
    assert profile["frame_readout_time"] == pytest.approx(0.62e3 * INTERVAL_S * 360 / 270)
    assert profile["fisheye_params"]["camera_matrix"][1][2] == pytest.approx(picture.camera.lens.cy + 45)
    assert "480 x 270 pixels from (10, 45) on" in profile["rssc"]["rows"]
    (text,) = export_files(whole, "kalibr").values()
    assert yaml.safe_load(text)["cam0"]["line_delay"] == pytest.approx(0.62 * INTERVAL_S / 270)
    (tmp_path / "camchain.yaml").write_bytes(text)
    back = read_reference(tmp_path / "camchain.yaml", whole)
    assert back.camera.shutter.readout_ratio == pytest.approx(0.62)
    for name in EXPORTERS:
        export_files(whole, name, ExportOptions())


@pytest.mark.parametrize("row", ["first", "middle", "last"])
def test_rectified_pictures_are_the_same_within_bars(row):
    clip = render_clip(ClipOptions(240, 160, 6, lens=typical_lens("radial", 240, 160), motion="shaky", seed=1))
    cropped = Cropped(264, 216, ActiveArea(8, 32, 240, 160))
    calibration = make_calibration(clip.camera, [make_stretch(true_scene(clip, spacing=12))])
    scene = in_whole_image(calibration, cropped).stretches[0].scene
    options = RectifyOptions(row=row)
    alone = Rectifier(calibration.stretches[0].scene, options).source_map(3)

    def difference(scene):
        within = Rectifier(scene, options).source_map(3)[32:192, 8:248]
        return np.percentile(np.linalg.norm(within - alone - (8, 32), axis=2), 95)

    # Depths are interpolated between other nodes in the larger image.
    assert difference(scene) < 0.1
    assert difference(replace(scene, camera=replace(scene.camera, active=None))) > 0.3


def test_a_clip_that_cannot_be_told_keeps_its_size_and_its_notes():
    images = np.zeros((10, 270, 480), np.uint8)
    numbers = np.arange(10)
    footage = Footage(images, numbers / 30, numbers, ("",) * 10, ("a note.",), (), CROPPED)
    found = degenerate_result(footage, NotCalibratableError("why"))
    assert (found.camera.width, found.camera.height) == (500, 360) and found.notes[0] == "a note."


def test_areas_lie_within_the_image(picture):
    camera = picture.camera
    with pytest.raises(InputError, match=r"ends at \(490, 315\); expected at most the 480 x 270"):
        Camera(480, 270, camera.lens, camera.shutter, active=AREA)
    with pytest.raises(InputError, match="expected at least 2 x 2"):
        ActiveArea(0, -1, 4, 4)
