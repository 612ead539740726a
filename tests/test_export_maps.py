"""Exports that are no camera with a pose: maps, tracks and numbers; and the trust that all exports carry."""

import csv
import io
import json
from dataclasses import replace

import cv2
import numpy as np
import OpenImageIO
import pytest
from pxr import Sdf

from rssc.errors import InputError
from rssc.model.camera import ActiveArea
from rssc.outputs.exporters import EXPORTERS, ExportOptions, export_files, write_export
from rssc.outputs.exporters.trust import trust_of
from tests.builders import make_calibration, make_covariance
from tests.test_exporters import HEIGHT, INTERVAL_S, LENSES, WIDTH, calibration_of, camera_of, texts_of

TOLERANCE_PX = 1e-3


def read_map(path):
    """(h, w, 2) pixels of the source that an ST map shows, rows from the top, as OpenImageIO reads the file."""
    image = OpenImageIO.ImageInput.open(str(path))
    spec = image.spec()
    assert (
        spec.channelnames == ("R", "G") and str(spec.format) == "float" and (spec.width, spec.height) == (WIDTH, HEIGHT)
    )
    places = image.read_image()
    image.close()
    # Nuke: the lower left pixel has its centre at half a pixel.
    pixels = np.stack([places[..., 0] * WIDTH - 0.5, (1 - places[..., 1]) * HEIGHT - 0.5], axis=-1)
    pixels[places[..., 0] < 0] = np.where(places[places[..., 0] < 0] == -1, np.nan, pixels[places[..., 0] < 0])
    return pixels, json.loads(spec.getattribute("rssc"))


@pytest.mark.parametrize("lens", ["opencv", "full_opencv", "fisheye"])
def test_lens_maps_are_opencvs(tmp_path, lens):
    camera = camera_of(lens)
    write_export(calibration_of(camera), "stmap", tmp_path)
    undistort, said = read_map(tmp_path / "undistort.exr")
    redistort, _ = read_map(tmp_path / "redistort.exr")
    assert said["sigma"]["fx"] == 1 and said["written_by"] == "rssc export --to stmap"
    matrix, coefficients = camera.lens.matrix, camera.lens.opencv_distortion
    make_maps = cv2.fisheye.initUndistortRectifyMap if lens == "fisheye" else cv2.initUndistortRectifyMap
    x, y = make_maps(matrix, coefficients, np.eye(3), matrix, (WIDTH, HEIGHT), cv2.CV_32FC1)
    assert np.nanmax(np.abs(undistort - np.stack([x, y], axis=-1))) < TOLERANCE_PX
    assert np.isfinite(undistort).mean() > 0.99
    # Back: the undistorted place of a pixel, seen through the other map, is the pixel.
    inside = (redistort > 5).all(axis=-1) & (redistort < [WIDTH - 5, HEIGHT - 5]).all(axis=-1)
    assert inside.mean() > 0.5
    again = cv2.remap(undistort.astype(np.float32), redistort.astype(np.float32), None, cv2.INTER_LINEAR)
    rows, columns = np.nonzero(inside)
    assert np.nanmax(np.abs(again[inside] - np.column_stack([columns, rows]))) < 0.02  # linear between pixels


@pytest.mark.parametrize("direction", ["top_to_bottom", "right_to_left"])
def test_frame_maps_take_the_rolling_shutter_out(tmp_path, direction):
    """Of a camera that only turns, where depth does not matter: a pixel of the map shows the ray of it."""
    calibration = calibration_of(camera_of("opencv", direction))
    calibration = turning_only(calibration)
    for row in ("first", "middle"):
        paths = write_export(calibration, "stmap-frames", tmp_path / row, ExportOptions(row=row))
        assert [path.name for path in paths] == [f"stmap_{i:06d}.exr" for i in range(10, 14)]
        scene = calibration.stretches[0].scene
        camera, ratio = scene.camera, scene.camera.shutter.readout_ratio
        share = {"first": 0.0, "middle": 0.5}[row] * (camera.line_count - 1) / camera.line_count
        source, _ = read_map(paths[2])
        y, x = np.mgrid[40:HEIGHT:80, 40:WIDTH:80]
        shown = source[y, x].reshape(-1, 2)
        read = scene.trajectory.cam_from_world(scene.row_times(shown, np.full(len(shown), 2)))
        reference = scene.trajectory.cam_from_world(2 + ratio * share)[0]
        world = np.einsum("nji,nj->ni", read[:, :, :3], camera.lens.unproject(shown))
        seen = camera.lens.project(world @ reference[:, :3].T)
        # Between the nodes of its grid the rectifier interpolates.
        assert np.abs(seen - np.column_stack([x.ravel(), y.ravel()])).max() < 0.05


def turning_only(calibration):
    stretch = calibration.stretches[0]
    poses = np.array(stretch.scene.trajectory.control_poses)
    poses[:, :, 3] = 0
    trajectory = replace(stretch.scene.trajectory, control_poses=poses)
    points = 1e4 * stretch.scene.points
    scene = replace(stretch.scene, trajectory=trajectory, points=points)
    return replace(calibration, stretches=(replace(stretch, scene=scene),))


def read_tracks(text):
    """As https://github.com/david-cattermole/mayaMatchMoveSolver, loadmarker/lib/formats/tdetxt.py, reads them."""
    rows = iter(text.strip().splitlines())
    tracks = {}
    for _ in range(int(next(rows))):
        name, _colour, count = next(rows), int(next(rows)), int(next(rows))
        tracks[name] = {}
        for _ in range(count):
            frame, x, y = next(rows).split()
            tracks[name][int(frame)] = (float(x) / WIDTH, float(y) / HEIGHT)
    assert next(rows, None) is None
    return tracks


@pytest.mark.parametrize(("row", "direction"), [("first", "bottom_to_top"), ("middle", "top_to_bottom")])
def test_tracks_are_a_global_shutters(row, direction):
    camera = camera_of("fisheye", direction)
    calibration = calibration_of(camera)
    scene = calibration.stretches[0].scene
    files = export_files(calibration, "tracks", ExportOptions(row=row))
    tracks = read_tracks(files["tracks.txt"].decode())
    assert len(tracks) == np.count_nonzero(scene.tracks.lengths)
    share = {"first": 0.0, "middle": 0.5}[row] * (camera.line_count - 1) / camera.line_count
    moved = 0.0
    for frame, point, pixel in zip(scene.tracks.frames, scene.tracks.points, scene.tracks.pixels, strict=True):
        pose = scene.trajectory.cam_from_world(frame + share * camera.shutter.readout_ratio)[0]
        expected = camera.lens.project((pose[:, :3] @ scene.points[point] + pose[:, 3])[None])[0]
        u, v = tracks[f"rssc_{point:06d}"][frame + 11]
        # 3DEqualizer's corner of the picture is at (0, 0), the opposite one at (1, 1).
        found = np.array([u * WIDTH - 0.5, (1 - v) * HEIGHT - 0.5])
        assert np.abs(found - expected).max() < TOLERANCE_PX
        moved = max(moved, np.abs(found - pixel).max())
    assert moved > 1


def test_row_times_are_those_of_the_model():
    camera = camera_of("opencv", "bottom_to_top")
    arrays = np.load(io.BytesIO(export_files(calibration_of(camera), "row-times")["row_times.npz"]))
    times = arrays["row_times_s"]
    assert times.shape == (HEIGHT, WIDTH)
    np.testing.assert_allclose(times[:, 17], -0.62 * INTERVAL_S * np.arange(HEIGHT) / HEIGHT, atol=1e-15)
    pinhole = replace(camera_of("pinhole"), undistorted_from=LENSES["opencv"])
    arrays = np.load(io.BytesIO(export_files(calibration_of(pinhole), "row-times")["row_times.npz"]))
    # A corner of an undistorted picture comes from nearer the middle of the sensor.
    assert arrays["row_times_s"][0, 0] > 1e-4 and abs(arrays["row_times_s"][240, 320] - 0.31 * INTERVAL_S) < 1e-4


def test_sheet_has_the_numbers_and_their_errors():
    camera = camera_of().with_exposure_ratio(0.2)
    covariance = make_covariance(camera, readout_ratio=0.01)
    calibration = make_calibration(camera, frame_interval_s=0.05, covariance=covariance.matrix, exposure_sigma=0.04)
    calibration = replace(calibration, status="weak", reasons=("slow",))
    text = export_files(calibration, "sheet")["sheet.md"].decode()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    rows = {f"{row[0]}, {row[1]}": row[2:] for row in cells if len(row) == 4}
    assert "Verdict: **weak** (slow)" in text
    assert rows["any, readout time, first row to one past the last (481 lines)"] == ["31.00 ms", "0.50 ms"]
    assert rows["any, from one row to the next"] == ["64.4 us", "1.0 us"]
    assert rows["After Effects, Premiere Pro, Rolling Shutter Repair, Rolling Shutter Rate"] == ["62.0 %", "1.0 %"]
    assert rows["3DEqualizer, setCameraRollingShutterTimeShift"] == ["0.03100 s", "0.00050 s"]
    assert rows["Android, SENSOR_ROLLING_SHUTTER_SKEW"] == ["31000000 ns", "500000 ns"]
    assert rows["Blender, Cycles, Motion Blur, Shutter, in frames"] == ["0.820", "0.041"]
    unknown = replace(calibration, covariance=make_covariance(camera, readout_ratio=np.inf, fx=0.0).matrix)
    said = export_files(unknown, "sheet")["sheet.md"].decode()
    assert "| percent of the frame | 62 % | unknown |" in said and "| 31000000 ns | unknown |" in said
    assert f"| fx | {camera.lens.fx:.9g} | fixed |" in said
    # d = e / (g + e): its differential times the errors of both.
    expected = np.hypot(0.62 * 0.04, 0.2 * 0.01) / 0.82**2
    assert rows["Blender, Cycles, Rolling Shutter Duration"] == [f"{0.2 / 0.82:.3f}", f"{expected:.3f}"]


@pytest.mark.parametrize("format_name", EXPORTERS)
def test_every_export_says_how_far_to_trust_it(tmp_path, format_name):
    camera = camera_of()
    covariance = make_covariance(camera, 0.25, readout_ratio=0.0125)
    calibration = replace(
        calibration_of(camera), covariance=covariance.matrix, status="weak", reasons=("too slow", 'a "quote"')
    )  # fmt: skip
    said = found_statement(write_export(calibration, format_name, tmp_path))
    assert (said["calibration_status"], said["reasons"]) == ("weak", ["too slow", 'a "quote"'])
    assert said["sigma"]["fx"] == 0.25 and said["sigma"]["readout_ratio"] == 0.0125
    assert said["sigma"]["line_delay_s"] == pytest.approx(0.0125 * INTERVAL_S / HEIGHT)
    assert said["covariance"]["parameters"] == list(calibration.parameters)
    np.testing.assert_array_equal(said["covariance"]["matrix"], calibration.covariance)


def found_statement(paths):
    """The statement of an export, wherever it is."""
    files = {path.name: path.read_bytes() for path in paths}
    texts = dict(zip(files, texts_of(files), strict=True))
    name = next((name for name in files if name == "rssc_trust.json"), "")
    name = name or next(name for name, text in texts.items() if "calibration_status" in text)
    if name.endswith(".exr"):
        return read_map(paths[0])[1]
    if name.endswith(".usda"):
        return json.loads(Sdf.Layer.FindOrOpen(str(paths[0])).customLayerData["rssc"])
    if name.endswith((".json", ".npz")):
        document = json.loads(texts[name])
        return document.get("rssc", document)
    if name.endswith(".gcsv"):
        said = {row[0]: row[1] for row in csv.reader(texts[name].splitlines()) if len(row) == 2}
    else:
        said = dict(row[2:].split(": ", 1) for row in texts[name].splitlines() if row.startswith("# ") and ": " in row)
    return said | {key: json.loads(said[key]) for key in ("reasons", "sigma", "covariance")}


def test_trust_counts_the_rows_of_the_exported_camera():
    """Exports count rows of the whole image; with black bars the same line delay makes a longer readout."""
    camera = replace(camera_of("pinhole"), active=ActiveArea(0, 40, WIDTH, 401))
    calibration = make_calibration(camera, covariance=make_covariance(camera, readout_ratio=0.02).matrix)
    whole, _ = camera.over_whole_image()
    trust = trust_of(calibration, whole)
    assert trust.sigma("readout_ratio") == pytest.approx(0.02 * HEIGHT / 401) and trust.sigma("fx") == 1
    unknown = make_calibration(camera, covariance=make_covariance(camera, fx=np.inf).matrix)
    assert json.loads(json.dumps(trust_of(unknown, whole).document(0.1, 10)))["sigma"]["fx"] == 1e9


def test_bounds_of_the_line_delay_are_its_error_bar():
    calibration = calibration_of(camera_of())
    tight = make_covariance(calibration.camera, readout_ratio=0.01).matrix
    text = export_files(replace(calibration, covariance=tight), "ctrl-vio")["ctrl_vio_line_delay.yaml"].decode()
    bounds = [float(row.split(": ")[1]) for row in text.splitlines() if row.startswith(("ld_lower", "ld_upper"))]
    np.testing.assert_allclose(bounds, np.array([0.59, 0.65]) * INTERVAL_S / HEIGHT)
    fixed = make_covariance(calibration.camera, readout_ratio=0.0).matrix
    assert (
        "fix_ld: true"
        in export_files(replace(calibration, covariance=fixed), "ctrl-vio")["ctrl_vio_line_delay.yaml"].decode()
    )


def test_formats_share_a_folder_or_refuse_it(tmp_path):
    """No export replaces what another one wrote."""
    calibration = calibration_of(camera_of())
    names = {name: set(export_files(calibration, name)) for name in EXPORTERS if name != "stmap-frames"}
    shared = [(a, b) for a in names for b in names if a != b and names[a] & names[b]]
    assert {frozenset(pair) for pair in shared} == {
        frozenset(pair) for pair in (("colmap", "colmap-text"), ("nerfstudio", "instant-ngp"))
    }
    for first, second in shared:
        folder = tmp_path / f"{first}, {second}"
        before = {path: path.read_bytes() for path in write_export(calibration, first, folder)}
        with pytest.raises(InputError, match=rf"not written by .* but by rssc export --to {first}, .* another folder"):
            write_export(calibration, second, folder)
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
    together = [name for name in names if not any(name in pair for pair in shared)]
    for _ in range(2):
        paths = [path for name in together for path in write_export(calibration, name, tmp_path / "together")]
    assert len(set(paths)) == len(paths) == len(list((tmp_path / "together").iterdir()))


def test_maps_without_the_package_say_how_to_get_it(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("rssc.outputs.exporters.st_maps.import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'rssc\[film\]'"):
        write_export(calibration_of(camera_of()), "stmap", tmp_path / "maps")
    assert not (tmp_path / "maps").exists()
