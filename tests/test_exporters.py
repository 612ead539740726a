"""Exported files, read back as other tools read them: points land on the same pixels, or the export is refused."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pycolmap
import pytest

from rssc.errors import InputError
from rssc.io.lens_files import read_lens
from rssc.io.ply import ply_bytes
from rssc.kernels import lie
from rssc.model import LENS_MODELS, Lens, Trajectory
from rssc.names import FORMAT_WORDS
from rssc.outputs.exporters import EXPORTERS, ExportOptions, export_files, nearest_lens, write_export
from rssc.outputs.exporters.exporter import DIRECTIONS
from rssc.outputs.exporters.nearest_lens import nearest_lenses
from rssc.simulation.motion import room_motion
from rssc.solver.spline_fit import fit_trajectory
from tests.builders import make_calibration, make_camera, make_scene, make_stretch
from tests.exporter_readers import BLURRED_READERS, READERS, Truth

# Odd sizes have a middle row and a middle column.
WIDTH, HEIGHT, INTERVAL_S, FRAMES, TOLERANCE_PX = 641, 481, 1 / 29.97, 4, 1e-3
LENSES = {model: make_camera(model, WIDTH, HEIGHT).lens for model in LENS_MODELS}
DOWNWARD_ONLY = ("kalibr", "vins", "opendronemap", "nerfstudio", "blender", "ctrl-vio")
LINEAR = ("nerfstudio", "gsplat", "instant-ngp", "usd", "blender")
"""Tools that interpolate within a frame."""
WITHOUT_VIEW = ("gcsv", "stmap", "stmap-frames", "tracks", "sheet", "row-times")
"""Formats that are no cameras with a pose; tests/test_export_maps.py reads them."""


K4, K6, TANGENTIAL = ("k1", "k2", "k3", "k4"), ("k1", "k2", "k3", "k4", "k5", "k6"), ("p1", "p2")
BROWN = {"perspective": {"k1", "k2", "k3", *TANGENTIAL}}
HELD = {
    "usd": {"perspective": {*K6, *TANGENTIAL}, "fisheye": {*K4}},
    "openicc": BROWN | {"fisheye": {*K4}},
    "opendronemap": BROWN | {"fisheye": set()},
    "opencv": {"perspective": {*K6, *TANGENTIAL}, "fisheye": {*K4}},
    "ros": {"perspective": {*K6, *TANGENTIAL}, "fisheye": {*K4}},
    "gsplat": {"perspective": {*K6, *TANGENTIAL}, "fisheye": {*K4}},
    **{
        name: {"perspective": {"k1", "k2", *TANGENTIAL}, "fisheye": {*K4}}
        for name in ("kalibr", "vins", "gyroflow", "nerfstudio", "instant-ngp", "orb-slam3", "openvins", "ctrl-vio")
    },
}
"""Distortion coefficients that a tool's files have, by the plane that distortion acts on; COLMAP has all of ours."""


def holds(format_name, lens):
    model = LENS_MODELS[lens]
    return format_name not in HELD or set(model.coefficients) <= HELD[format_name][model.family]


def camera_of(lens="opencv", direction="top_to_bottom", ratio=0.62):
    return make_camera(lens, WIDTH, HEIGHT, readout_ratio=ratio, direction=direction)


def trajectory_of(motion):
    """A hand that trembles, or a screw motion, which every interpolation follows exactly."""
    rng = np.random.default_rng(5)
    axis = np.array([0.3, 0.8, -0.2])
    poses, pose = [], lie.se3_exp(np.concatenate([0.02 * axis, 0.3 * axis]))
    for _ in range(14):
        poses.append(pose)
        step = np.concatenate([0.02 * axis, 0.03 * axis]) if motion == "screw" else 0.02 * rng.standard_normal(6)
        pose = lie.compose(lie.se3_exp(step), pose)
    return Trajectory(np.array(poses), -1.5, 0.66)


def calibration_of(camera, motion="hand"):
    scene = make_scene(camera, trajectory_of(motion), FRAMES)
    stretch = make_stretch(scene, first_frame=10, start_s=2.0, interval_s=INTERVAL_S)
    return make_calibration(camera, (stretch,), frame_interval_s=INTERVAL_S, knot_spacing=0.66)


def lines_of(camera):
    count = HEIGHT if camera.shutter.axis == "rows" else WIDTH
    return {"first": 0, "middle": (count - 1) // 2, "last": count - 1}


def pixels_on(camera, line):
    along = np.linspace(25.0, (WIDTH if camera.shutter.axis == "rows" else HEIGHT) - 25.0, 9)
    across = np.full(9, float(line))
    return np.column_stack([along, across] if camera.shutter.axis == "rows" else [across, along])


def largest_error_px(calibration, folder, format_name, line, frame=2, within=None):
    """Between pixels of a line and where the tool sees the world points that our model sees there.

    `within` is a moment of the exposure of a tool that averages over it, -0.5 its beginning and 0.5 its end.
    """
    scene = calibration.stretches[0].scene
    camera, trajectory = scene.camera, scene.trajectory
    pixels = pixels_on(camera, line)
    local = camera.lens.unproject(pixels) * np.linspace(2.0, 9.0, len(pixels))[:, None]
    row_time = scene.row_times(pixels, np.full(len(pixels), frame))[0]
    exposed = 0.0 if within is None else within * calibration.camera.shutter.exposure_ratio
    pose = trajectory.cam_from_world(row_time + exposed)[0]
    world = (local - pose[:, 3]) @ pose[:, :3]

    def poses(frame, delay_s):
        return trajectory.cam_from_world(frame + delay_s / INTERVAL_S)[0]

    pinhole = camera.lens.without_distortion()
    truth = Truth(poses, WIDTH, HEIGHT, lambda undistorted: camera.lens.project(pinhole.unproject(undistorted)))
    if within is None:
        view = READERS[format_name](folder, frame, line, truth)
    else:
        # instant-ngp goes from the upper edge to the lower, also where that is backwards in time; the mean is the same.
        backwards = format_name == "instant-ngp" and camera.shutter.readout_ratio < 0
        view = BLURRED_READERS[format_name](folder, frame, line, truth, -within if backwards else within)
    seen = view.project(world @ view.cam_from_world[:, :3].T + view.cam_from_world[:, 3])
    return np.abs(seen - pixels).max()


def check_every_line(calibration, format_name, folder, tolerance_px=TOLERANCE_PX):
    """A tool sees points of the first, middle and last line where we see them."""
    lines = lines_of(calibration.camera)
    if format_name == "blender" and (
        any(calibration.camera.lens.distortion) or calibration.camera.lens.family != "perspective"
    ):
        # Rows of a camera without distortion are not the sensor's: the frames are rectified ones, of the middle row.
        lines = {"middle": lines["middle"]}
    for row, line in lines.items():
        options = ExportOptions(row=row) if EXPORTERS[format_name].has_row_choice else None
        write_export(calibration, format_name, folder / row, options)
        assert largest_error_px(calibration, folder / row, format_name, line) < tolerance_px


def test_every_format_has_a_reader():
    assert {*READERS, *WITHOUT_VIEW} == set(EXPORTERS)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("format_name", READERS)
def test_tools_see_points_where_we_see_them(tmp_path, format_name, lens, direction):
    camera = camera_of(lens, direction)
    calibration = calibration_of(camera, "screw" if format_name in LINEAR else "hand")
    if format_name in DOWNWARD_ONLY and direction != "top_to_bottom":
        with pytest.raises(InputError, match=f"{format_name} cannot hold .* {direction.split('_')[0]} to .*; formats"):
            export_files(calibration, format_name)
        return
    if not holds(format_name, lens) and format_name == "opendronemap":
        (text,) = export_files(calibration, format_name).values()
        assert f"--cameras cannot hold a {lens} lens" in text.decode() and "cameras.json" not in text.decode()
        return
    if holds(format_name, lens):
        check_every_line(calibration, format_name, tmp_path)
        return
    near = next(one for one in nearest_lenses(camera.lens, WIDTH, HEIGHT) if holds(format_name, one.lens.model))
    if near.rms_px > nearest_lens._WORST_RMS_PX:
        with pytest.raises(InputError, match=rf"{lens} lens.*; (calibrate with the lens \w+|choose another format)\."):
            export_files(calibration, format_name)
        return
    with pytest.warns(UserWarning, match=f"no {lens} lens; the closest {near.lens.model} lens"):
        check_every_line(calibration, format_name, tmp_path, 1.2 * near.most_px + TOLERANCE_PX)


@pytest.mark.parametrize("ratio", [0.62, 0.0])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("format_name", BLURRED_READERS)
def test_tools_that_know_blur_expose_as_we_do(tmp_path, format_name, direction, ratio):
    """From the beginning to the end of the exposure, of every line."""
    if format_name in DOWNWARD_ONLY and direction != "top_to_bottom":
        pytest.skip(f"{format_name} reads downwards")
    camera = camera_of("opencv", direction, ratio).with_exposure_ratio(0.4)
    calibration = calibration_of(camera, "screw")
    write_export(calibration, format_name, tmp_path)
    for line in lines_of(camera).values():
        for within in (-0.5, 0.0, 0.3, 0.5):
            assert largest_error_px(calibration, tmp_path, format_name, line, within=within) < TOLERANCE_PX


def texts_of(files):
    """What can be read in the files of an export."""
    return [
        str(np.load(io.BytesIO(content))["statement"]) if name.endswith(".npz") else content.decode(errors="replace")
        for name, content in files.items()
    ]


@pytest.mark.parametrize("format_name", EXPORTERS)
def test_files_state_the_exposure_where_it_is_known(format_name):
    def said(calibration):
        return "".join(texts_of(export_files(calibration, format_name)))

    calibration = calibration_of(camera_of())
    assert "exposure_time_s" not in said(calibration)
    # The result's exposure counts, not what a stretch knew.
    exposed = replace(calibration, camera=calibration.camera.with_exposure_ratio(0.25))
    assert f"{0.25 * INTERVAL_S!r}" in said(exposed) and "exposure_time_s" in said(exposed)


def test_exposure_reaches_the_keys_that_tools_read():
    calibration = calibration_of(camera_of())
    exposed = replace(calibration, camera=calibration.camera.with_exposure_ratio(0.25))
    for given, expected in ((calibration, 0.0), (exposed, 0.25 * INTERVAL_S)):
        assert json.loads(export_files(given, "nerfstudio")["transforms.json"])["exposure_time"] == expected
    plain, blurred = (
        json.loads(export_files(one, "instant-ngp")["transforms.json"])["rolling_shutter"]
        for one in (calibration, exposed)
    )
    assert plain == [0, 0, 1, 0]
    assert blurred == pytest.approx([0, 0, 0.62 / 0.87, 0.25 / 0.87])


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_interpolating_tools_are_exact_where_they_have_poses(tmp_path, direction):
    """Also under a trembling hand; in between they interpolate, and a trembling hand does not."""
    camera = camera_of(direction=direction)
    calibration, lines = calibration_of(camera), lines_of(camera)
    write_export(calibration, "gsplat", tmp_path / "gsplat")
    assert largest_error_px(calibration, tmp_path / "gsplat", "gsplat", lines["first"]) < TOLERANCE_PX
    assert largest_error_px(calibration, tmp_path / "gsplat", "gsplat", lines["last"]) < TOLERANCE_PX
    assert largest_error_px(calibration, tmp_path / "gsplat", "gsplat", lines["middle"]) > TOLERANCE_PX
    if direction == "top_to_bottom":
        write_export(calibration, "nerfstudio", tmp_path / "nerfstudio")
        assert largest_error_px(calibration, tmp_path / "nerfstudio", "nerfstudio", lines["middle"]) < TOLERANCE_PX


def moving_as(kind, seed):
    """A calibration whose camera moves as a simulated one, over a few frames."""
    times = np.linspace(-1.5, FRAMES + 1, 120)
    poses = room_motion(kind, np.random.default_rng(seed), 1 / INTERVAL_S).cam_from_world(times)
    calibration = calibration_of(camera_of("pinhole"))
    stretch = calibration.stretches[0]
    scene = replace(stretch.scene, trajectory=fit_trajectory(times, poses, times[0], times[-1], 0.33))
    return replace(calibration, stretches=(replace(stretch, scene=scene),))


@pytest.mark.parametrize("format_name", LINEAR)
def test_interpolation_within_a_frame_is_off_by_little(tmp_path, format_name):
    """The hand-held figures of docs/exporting.md."""
    errors = []
    for seed in range(6):
        calibration = moving_as("hand_held", seed)
        write_export(calibration, format_name, tmp_path / str(seed))
        for line in np.linspace(0, HEIGHT - 1, 9):
            for frame in range(FRAMES):
                errors.append(largest_error_px(calibration, tmp_path / str(seed), format_name, line, frame))
    assert np.median(errors) < 0.15 and np.max(errors) < 0.7


@pytest.mark.parametrize("format_name", ["colmap", "colmap-text"])
@pytest.mark.parametrize("lens", LENSES)
def test_colmap_model_has_all_points_and_tracks(tmp_path, format_name, lens):
    calibration = calibration_of(camera_of(lens))
    stretch = calibration.stretches[0]
    tracks = stretch.scene.tracks
    write_export(calibration, format_name, tmp_path)
    model = pycolmap.Reconstruction(tmp_path)
    assert model.is_valid()
    assert [model.images[i + 1].name for i in range(FRAMES)] == [f"{name}.png" for name in stretch.names]
    kept = np.flatnonzero(tracks.lengths)
    assert len(kept) < tracks.point_count
    assert model.num_points3D() == len(kept) and model.compute_num_observations() == len(tracks)
    seen = {}
    for number, point in zip(kept, (model.points3D[i] for i in sorted(model.points3D)), strict=True):
        np.testing.assert_allclose(point.xyz, stretch.scene.points[number], rtol=1e-15)
        assert point.error == pytest.approx(0, abs=1e-6)
        for element in point.track.elements:
            keypoint = model.images[element.image_id].points2D[element.point2D_idx]
            assert np.allclose(model.points3D[keypoint.point3D_id].xyz, point.xyz)
            seen[element.image_id - 1, number] = keypoint.xy - 0.5
    wanted = zip(tracks.frames, tracks.points, tracks.pixels, strict=True)
    assert all(np.abs(seen[frame, number] - pixel).max() < 1e-9 for frame, number, pixel in wanted)


@pytest.mark.parametrize("format_name", ["colmap", "colmap-text"])
def test_colmap_model_is_complete_without_rigs_and_frames(tmp_path, format_name):
    """As COLMAP before 3.12 and readers of the three older files take it."""
    write_export(calibration_of(camera_of()), format_name, tmp_path)
    whole = pycolmap.Reconstruction(tmp_path)
    for path in (*tmp_path.glob("rigs.*"), *tmp_path.glob("frames.*")):
        path.unlink()
    plain = pycolmap.Reconstruction(tmp_path)
    assert (plain.num_cameras(), plain.num_reg_images()) == (1, FRAMES)
    assert plain.num_points3D() == whole.num_points3D()
    for number, image in whole.images.items():
        assert plain.images[number].name == image.name
        np.testing.assert_array_equal(plain.images[number].cam_from_world().matrix(), image.cam_from_world().matrix())


def test_colmap_model_that_does_not_fit_the_disk_is_an_error():
    """pycolmap itself cuts the file off and says nothing."""
    resource = pytest.importorskip("resource", reason="limits the size of files, on Unix only")
    calibration = calibration_of(camera_of())
    export_files(calibration, "colmap")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            export_files(calibration, "colmap")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_point_clouds_are_read_by_colmap(tmp_path):
    points = np.random.default_rng(1).normal(size=(40, 3))
    colours = np.random.default_rng(2).integers(0, 256, (40, 3)).astype(np.uint8)
    for given in (None, colours):
        (tmp_path / "points.ply").write_bytes(ply_bytes(points, given))
        found = pycolmap.Reconstruction()
        found.import_PLY(tmp_path / "points.ply")
        read = [found.points3D[i] for i in sorted(found.points3D)]
        np.testing.assert_allclose([point.xyz for point in read], points, rtol=1e-6)
        if given is not None:
            np.testing.assert_array_equal([point.color for point in read], given)


def test_colmap_sidecar_times_its_poses(tmp_path):
    calibration = calibration_of(camera_of(direction="bottom_to_top"))
    write_export(calibration, "colmap", tmp_path, ExportOptions(row="last"))
    sidecar = json.loads((tmp_path / "rssc_shutter.json").read_text())
    assert (sidecar["pose_row"], sidecar["readout_axis"], sidecar["direction"]) == (480, "rows", "bottom_to_top")
    # The last row of a sensor that reads upwards is read before the first.
    expected = 2.0 + INTERVAL_S * (1 - 0.62 * 480 / 481)
    assert sidecar["pose_times_s"]["frame_000011.png"] == pytest.approx(expected)


def test_opendronemap_flags():
    text = export_files(calibration_of(camera_of()), "opendronemap")["opendronemap.txt"].decode()
    flags = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(flags) == 1
    assert flags[0].split()[:2] == ["--rolling-shutter", "--rolling-shutter-readout"]
    assert float(flags[0].split()[2]) == pytest.approx(1e3 * 0.62 * INTERVAL_S, abs=1e-4)


@pytest.mark.parametrize("direction", ["bottom_to_top", "left_to_right", "right_to_left"])
def test_opendronemap_holds_one_direction(direction):
    with pytest.raises(InputError, match="opendronemap cannot hold"):
        export_files(calibration_of(camera_of(direction=direction)), "opendronemap")


@pytest.mark.parametrize("format_name", EXPORTERS)
def test_every_file_states_its_conventions(format_name):
    calibration = calibration_of(camera_of())
    exporter = EXPORTERS[format_name]
    texts = texts_of(export_files(calibration, format_name))
    for said in (exporter.units, exporter.span, exporter.reference_row, exporter.pixel_centre):
        assert any(said in text for text in texts)
    assert any("top_to_bottom" in text for text in texts)


def test_documentation_lists_every_format():
    text = (Path(__file__).parent.parent / "docs" / "exporting.md").read_text()
    for name in EXPORTERS:
        assert f"| `{name}` |" in text


@pytest.mark.parametrize("format_name", [name for name in EXPORTERS if name != "gcsv"])
def test_global_shutter(format_name, tmp_path):
    """Every tool sees all lines of a frame from one pose; the readers check what else a tool wants to be told."""
    calibration = calibration_of(camera_of(ratio=0.0))
    if format_name == "opendronemap":
        with pytest.raises(InputError, match="leave --rolling-shutter out"):
            export_files(calibration, format_name)
        return
    if format_name in WITHOUT_VIEW:
        assert write_export(calibration, format_name, tmp_path)
        return
    check_every_line(calibration, format_name, tmp_path)


def test_instant_ngp_keeps_a_fisheye_without_distortion(tmp_path):
    """All coefficients zero would make it a pinhole there."""
    camera = camera_of("fisheye").with_lens(Lens("fisheye", 312, 309, 324, 236))
    calibration = calibration_of(camera, "screw")
    write_export(calibration, "instant-ngp", tmp_path)
    assert largest_error_px(calibration, tmp_path, "instant-ngp", 0) < TOLERANCE_PX


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("format_name", ["opencv", "kalibr"])
def test_we_read_what_we_write(tmp_path, lens, format_name):
    if not holds(format_name, lens):
        pytest.skip(f"{format_name} has no {lens} lens")
    (path,) = write_export(calibration_of(camera_of(lens)), format_name, tmp_path)
    again, size = read_lens(str(path))
    assert size == (WIDTH, HEIGHT)
    pixels = np.array([[0.0, 0.0], [320.0, 100.0], [640.0, 480.0]])
    np.testing.assert_allclose(again.project(LENSES[lens].unproject(pixels)), pixels, atol=1e-9)


@pytest.mark.parametrize("format_name", EXPORTERS)
def test_rows_of_undistorted_images_are_not_passed_off_as_the_sensors(format_name):
    calibration = calibration_of(camera_of("pinhole"))
    stretch = calibration.stretches[0]
    camera = replace(stretch.scene.camera, undistorted_from=LENSES["fisheye"])
    stretches = (replace(stretch, scene=replace(stretch.scene, camera=camera)),)
    calibration = replace(calibration, camera=camera, stretches=stretches)
    if EXPORTERS[format_name].has_row_times:
        with pytest.raises(InputError, match="undistorted"):
            export_files(calibration, format_name)
    else:
        assert "before it was undistorted" in "".join(texts_of(export_files(calibration, format_name)))


@pytest.mark.parametrize("format_name", EXPORTERS)
def test_poses_are_asked_for_where_needed(format_name):
    calibration = replace(calibration_of(camera_of()), stretches=())
    if EXPORTERS[format_name].has_poses:
        with pytest.raises(InputError, match=r"is not beside calibration\.json"):
            export_files(calibration, format_name)
    else:
        assert export_files(calibration, format_name)


def test_other_requests_are_refused():
    calibration = calibration_of(camera_of())
    with pytest.raises(InputError, match="expected one of colmap, colmap-text, opencv"):
        export_files(calibration, "metashape")
    with pytest.raises(InputError, match="this calibration has 1, counted from 0"):
        export_files(calibration, "gsplat", ExportOptions(stretch=1))
    with pytest.raises(
        InputError, match="rows of kalibr are fixed; only colmap, colmap-text, stmap-frames, tracks offer"
    ):
        export_files(calibration, "kalibr", ExportOptions(row="first"))
    stretch = calibration.stretches[0]
    without = replace(stretch, scene=replace(stretch.scene, trajectory=None))
    with pytest.raises(InputError, match="the method auto"):
        export_files(replace(calibration, stretches=(without,)), "gsplat")


def run(*arguments):
    command = [sys.executable, "-m", "rssc", "export", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_command(tmp_path):
    calibration = calibration_of(camera_of())
    path = tmp_path / "calibration.json"
    replace(calibration, status="weak", reasons=("too slow",)).save(path)
    result = run(path, "--to", "kalibr", "-o", tmp_path / "new" / "chain.yaml")
    assert result.returncode == 0 and "chain.yaml" in result.stdout and "weak: too slow" in result.stdout
    assert read_lens(str(tmp_path / "new" / "chain.yaml"))[0] == LENSES["opencv"]
    result = run(path, "--to", "colmap", "-o", tmp_path / "model", "--row", "first")
    assert result.returncode == 0
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "cameras.bin", "frames.bin", "images.bin", "points3D.bin", "rigs.bin", "rssc_shutter.json",
    ]  # fmt: skip
    assert largest_error_px(calibration, tmp_path / "model", "colmap", 0) < TOLERANCE_PX


@pytest.mark.parametrize(
    ("format_name", "output", "message"),
    [
        ("metashape", "out", "format is 'metashape'"),
        ("kalibr", "missing", "cannot read"),
        ("gsplat", "out", "is not beside"),
    ],
)
def test_command_says_what_is_wrong_in_one_line(tmp_path, format_name, output, message):
    calibration = replace(calibration_of(camera_of()), stretches=())
    calibration.save(tmp_path / "calibration.json")
    source = tmp_path / ("nothing.json" if output == "missing" else "calibration.json")
    result = run(source, "--to", format_name, "-o", tmp_path / output)
    assert result.returncode == 2
    assert message in result.stderr and len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / output).exists()


def test_command_help_describes_every_format():
    result = run("--help")
    assert result.returncode == 0
    words = " ".join(result.stdout.replace("│", " ").split())
    assert tuple(FORMAT_WORDS) == tuple(EXPORTERS)
    assert all(f"{name}: {what}" in words for name, what in FORMAT_WORDS.items())
