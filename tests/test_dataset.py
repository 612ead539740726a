"""Datasets, read back by the tools' own readers: points land on the pixels that show them."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import av
import cv2
import numpy as np
import pycolmap
import pytest

import rssc
from rssc.cli import run
from rssc.errors import InputError
from rssc.io.files import new_folder
from rssc.model.poses import transform_points
from rssc.outputs.dataset import write_dataset
from rssc.outputs.joined import joined_stretches
from rssc.outputs.options import DatasetOptions
from rssc.simulation.clip import ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import write_clip
from rssc.simulation.rectification import _psnr
from rssc.simulation.truth import true_calibration

WIDTH, HEIGHT, FRAMES = 320, 240, 12


def film(lens="opencv", ratio=0.7, axis="rows"):
    """A clip and its true calibration."""
    clip = render_clip(
        ClipOptions(WIDTH, HEIGHT, FRAMES, lens=typical_lens(lens, WIDTH, HEIGHT), readout_ratio=ratio, axis=axis,
                    motion="shaky", seed=1, image_noise=0.0, colour=True)
    )  # fmt: skip
    return clip, true_calibration(clip, tuple(f"frame_{i:06d}" for i in range(FRAMES)))


@pytest.fixture(scope="module")
def clip_and_calibration():
    return film()


@pytest.fixture(scope="module")
def calibration(clip_and_calibration):
    return clip_and_calibration[1]


@pytest.fixture(scope="module")
def video(clip_and_calibration, tmp_path_factory):
    """With the rotation metadata of a phone that was held upright."""
    folder = tmp_path_factory.mktemp("video")
    write_clip(clip_and_calibration[0], folder, video=True)
    path = folder / "upright.mp4"
    with av.open(str(folder / "clip.mp4")) as old, av.open(str(path), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        stream.set_display_rotation(90)
        for packet in old.demux(old.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                new.mux(packet)
    return path


@pytest.fixture(scope="module")
def rectified(calibration, video, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dataset") / "colmap"
    return folder, write_dataset(video, calibration, "colmap", folder)


@pytest.fixture(scope="module")
def as_filmed(calibration, video, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dataset") / "nerfstudio"
    write_dataset(video, calibration, "nerfstudio", folder)
    return folder


def read(path):
    return cv2.imread(str(path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)[..., ::-1]


def test_colmap_reads_rectified_frames(rectified):
    folder, done = rectified
    model = pycolmap.Reconstruction(folder / "sparse" / "0")
    camera = model.cameras[1]
    assert model.is_valid() and model.num_cameras() == 1
    assert camera.model.name == "PINHOLE" and (camera.width, camera.height) == (done.camera.width, done.camera.height)
    names = sorted(image.name for image in model.images.values())
    assert (
        names == [f"frame_{i:06d}.png" for i in range(FRAMES)] == sorted(p.name for p in (folder / "images").iterdir())
    )
    errors, colours = [], []
    for image in model.images.values():
        pixels = read(folder / "images" / image.name)
        assert pixels.shape == (camera.height, camera.width, 3)
        for keypoint in image.points2D:
            point = model.points3D[keypoint.point3D_id]
            errors.append(np.linalg.norm(image.project_point(point.xyz) - keypoint.xy))
            column, row = (int(value) for value in keypoint.xy)
            colours.append(np.abs(pixels[row, column].astype(float) - point.color).mean())
    assert len(errors) > 500 and model.num_points3D() == done.point_count
    # Exact tracks, so that only the curvature of the readout within a frame is left.
    assert np.max(errors) < 0.01
    # The frames show the points where the model has them, in their colours; those of other points differ by more.
    rng = np.random.default_rng(0)
    assert np.median(colours) < 12
    points = np.array([point.color for point in model.points3D.values()], float)
    assert np.median(np.abs(points - rng.permutation(points)).mean(axis=1)) > 2 * np.median(colours)


def test_rectified_frames_are_what_a_pinhole_with_a_global_shutter_sees(clip_and_calibration, rectified):
    clip, _ = clip_and_calibration
    folder, done = rectified
    lens, sensor = done.camera.lens, clip.camera.lens
    u, v = np.meshgrid(np.arange(done.camera.width), np.arange(done.camera.height))
    at = sensor.project(lens.unproject(np.stack([u.ravel(), v.ravel()], 1))).reshape(*u.shape, 2).astype(np.float32)
    everywhere = np.ones(u.shape, bool)
    for frame in (2, 9):
        truth = cv2.remap(clip.render_global_shutter(frame), at, None, cv2.INTER_CUBIC)
        filmed = cv2.remap(clip.frame(frame), at, None, cv2.INTER_CUBIC)
        found = read(folder / "images" / f"frame_{frame:06d}.png")
        assert _psnr(found, truth, everywhere) > _psnr(filmed, truth, everywhere) + 5


def test_frames_as_filmed_have_poses_for_two_tools(clip_and_calibration, as_filmed, video):
    _, calibration = clip_and_calibration
    document = json.loads((as_filmed / "transforms.json").read_text())
    images = [read(as_filmed / frame["file_path"]) for frame in document["frames"]]
    assert len(images) == FRAMES and images[0].shape == (HEIGHT, WIDTH, 3)
    with av.open(str(video)) as container:
        for image, frame in zip(images, container.decode(video=0), strict=True):
            np.testing.assert_array_equal(image, frame.to_ndarray(format="rgb24"))
    assert document["rolling_shutter_time"] == pytest.approx(calibration.readout_time_s)
    arrays = np.load(as_filmed / "gsplat.npz")
    for name in ("viewmats", "viewmats_rs", "Ks", "radial_coeffs", "tangential_coeffs", "points"):
        assert arrays[name].dtype == np.float32
    assert list(arrays["names"]) == [Path(frame["file_path"]).name for frame in document["frames"]]
    model = pycolmap.Reconstruction()
    model.import_PLY(as_filmed / document["ply_file_path"])
    colours = np.array([model.points3D[i].color for i in sorted(model.points3D)])
    np.testing.assert_array_equal(colours, arrays["colours"])
    tracks = calibration.stretches[0].scene.tracks
    first = tracks.offsets[:-1]
    at = np.round(tracks.pixels[first]).astype(int)
    seen = np.array([images[frame][v, u] for frame, (u, v) in zip(tracks.frames[first], at, strict=True)])
    assert np.median(np.abs(seen.astype(float) - colours)) < 12


@pytest.mark.parametrize(
    ("lens", "ratio", "axis"),
    [("opencv", 0.7, "rows"), ("fisheye", -0.6, "rows"), ("full_opencv", -0.5, "columns"), ("pinhole", 0.0, "rows")],
)
def test_ncore_projects_points_to_their_pixels(clip_and_calibration, tmp_path, lens, ratio, axis):
    pytest.importorskip("ncore", reason="nvidia-ncore is not installed (rssc[ncore])")
    from ncore.data import FrameTimepoint
    from ncore.data.v4 import SequenceComponentGroupsReader, SequenceLoaderV4
    from ncore.sensors import camera_model_from_parameters
    from upath import UPath

    clip, calibration = film(lens, ratio, axis) if lens != "opencv" else clip_and_calibration
    write_clip(clip, tmp_path / "clip", video=False)
    for path in (tmp_path / "clip").glob("*.png"):
        path.rename(path.with_name(f"frame_{path.stem[-5:]:0>6}.png"))
    stretch = calibration.stretches[0]
    stretch = replace(stretch, names=tuple(f"{name}.png" for name in stretch.names))
    calibration = replace(calibration, stretches=(stretch,))
    write_dataset(tmp_path / "clip", calibration, "ncore", tmp_path / "out")
    loader = SequenceLoaderV4(SequenceComponentGroupsReader([UPath(tmp_path / "out" / "clip.json")]))
    (name,) = loader.camera_ids
    sensor = loader.get_camera_sensor(name)
    assert sensor.frames_count == FRAMES
    model = camera_model_from_parameters(sensor.model_parameters, device="cpu")
    scene, tracks = stretch.scene, stretch.scene.tracks
    errors = []
    for frame in range(FRAMES):
        start, end = (
            sensor.get_frames_T_source_sensor("world", frame, when).reshape(4, 4)
            for when in (FrameTimepoint.START, FrameTimepoint.END)
        )
        here = tracks.frames == frame
        found = model.world_points_to_image_points_shutter_pose(
            scene.points[tracks.points[here]].astype(np.float32), start, end, return_all_projections=True,
            return_valid_indices=True,
        )  # fmt: skip
        valid = found.valid_indices.numpy()
        assert len(valid) > 0.9 * here.sum()
        errors.append(np.linalg.norm(found.image_points.numpy() - 0.5 - tracks.pixels[here], axis=1)[valid])
    assert np.median(np.concatenate(errors)) < 0.1
    np.testing.assert_array_equal(sensor.get_frame_image_array(3), clip.frame(3))
    (cloud,) = loader.point_clouds_ids
    points = loader.get_point_clouds_source(cloud).get_pc(0)
    np.testing.assert_allclose(points.xyz, scene.points, rtol=1e-6)
    assert points.get_attribute("rgb").shape == scene.points.shape


def test_without_ncore_the_remedy_is_said(calibration, video, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ncore.data.v4", None)
    with pytest.raises(InputError, match=r"pip install 'rssc\[ncore\]'"):
        write_dataset(video, calibration, "ncore", tmp_path / "out")


def test_of_several_stretches_the_longest_is_taken(calibration, video, tmp_path, capsys):
    whole = calibration.stretches[0]
    scene = whole.scene.window(0, 5)
    short = replace(
        whole, scene=scene, times_s=whole.times_s[:5], frame_numbers=whole.frame_numbers[:5], names=whole.names[:5]
    )
    several = replace(calibration, stretches=(short, whole))
    several.save(tmp_path / "calibration.json")
    line = ["dataset", str(video), str(tmp_path / "calibration.json"), "--for", "nerfstudio", "-o"]
    assert run([*line, str(tmp_path / "long"), "--every", "4", "--images", "jpg"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "3 frames of 320 x 240 pixels" in said and "stretch 1 of 2" in said
    statement = json.loads((tmp_path / "long" / "rssc_dataset.json").read_text())
    assert statement["frame_numbers"] == {"frame_000000.jpg": 0, "frame_000004.jpg": 4, "frame_000008.jpg": 8}
    assert run([*line, str(tmp_path / "short"), "--stretch", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["frames"] == [0, 1, 2, 3, 4]
    assert run([*line, str(tmp_path / "none"), "--stretch", "2"]) == 2
    assert "expected one of 0, 1" in capsys.readouterr().err
    for to, told in (("usd", True), ("gcsv", False), ("kalibr", False)):
        assert run(["export", str(tmp_path / "calibration.json"), "--to", to, "-o", str(tmp_path / to)]) == 0
        assert ("stretch 0 of 2, frames 0 to 4" in " ".join(capsys.readouterr().out.split())) == told


def test_parts_of_one_world_are_one_dataset(calibration, video, tmp_path, capsys):
    whole = calibration.stretches[0]
    frames = np.concatenate([np.arange(5), np.arange(7, FRAMES)])
    parts = [
        replace(whole, scene=whole.scene.window(begin, end), times_s=whole.times_s[begin:end],
                frame_numbers=whole.frame_numbers[begin:end], names=whole.names[begin:end], world=0)
        for begin, end in ((0, 5), (7, FRAMES))
    ]  # fmt: skip
    several = replace(calibration, stretches=tuple(parts))
    several.save(tmp_path / "calibration.json")
    line = ["dataset", str(video), str(tmp_path / "calibration.json"), "--for", "colmap", "-o", str(tmp_path / "out")]
    assert run(line) == 0
    assert f"{len(frames)} frames" in (said := capsys.readouterr().out) and "stretch" not in said
    model = pycolmap.Reconstruction(tmp_path / "out" / "sparse" / "0")
    assert sorted(image.name for image in model.images.values()) == [f"frame_{i:06d}.png" for i in frames]
    errors = [
        np.linalg.norm(image.project_point(model.points3D[seen.point3D_id].xyz) - seen.xy)
        for image in model.images.values() for seen in image.points2D
    ]  # fmt: skip
    assert len(errors) > 300 and max(errors) < 0.01
    # Every row of every frame is where its own part has it, to a thousandth of a pixel.
    (joined,) = joined_stretches(several)
    tracks = joined.scene.tracks
    pixels = joined.scene.camera.lens.project(
        transform_points(joined.scene.row_poses(tracks.pixels, tracks.frames), joined.scene.points[tracks.points])
    )
    own = np.concatenate([
        one.camera.lens.project(
            transform_points(one.row_poses(one.tracks.pixels, one.tracks.frames), one.points[one.tracks.points])
        ) for one in (part.scene for part in parts)
    ])  # fmt: skip
    assert np.abs(pixels - own).max() < 1e-3


def test_the_sharpest_of_each_group_is_kept(clip_and_calibration, tmp_path):
    clip, calibration = clip_and_calibration
    (tmp_path / "in").mkdir()
    for i in range(FRAMES):
        image = clip.frame(i) if i % 4 == 2 else cv2.GaussianBlur(clip.frame(i), (0, 0), 2)
        cv2.imwrite(str(tmp_path / "in" / f"frame_{i:06d}.png"), image[..., ::-1])
    stretch = calibration.stretches[0]
    named = replace(calibration, stretches=(replace(stretch, names=tuple(f"{name}.png" for name in stretch.names)),))
    done = rssc.dataset(tmp_path / "in", named, "colmap", tmp_path / "out", every=4, sharpest=True, border="black")
    assert done.frame_numbers.tolist() == [2, 6, 10]
    np.testing.assert_array_equal((done.camera.width, done.camera.height), (WIDTH, HEIGHT))
    # Frame 6 again, by its points and its only pose.
    model = pycolmap.Reconstruction(tmp_path / "out" / "sparse" / "0")
    pose = stretch.scene.trajectory.cam_from_world([6 + 0.7 * (HEIGHT - 1) / 2 / HEIGHT])[0]
    image = model.find_image_with_name("frame_000006.png")
    np.testing.assert_allclose(image.cam_from_world().matrix(), pose, atol=1e-9)
    points = np.array([model.points3D[keypoint.point3D_id].xyz for keypoint in image.points2D])
    expected = done.camera.lens.project(transform_points(pose[None], points))
    np.testing.assert_allclose([keypoint.xy for keypoint in image.points2D], expected + 0.5, atol=0.01)


def test_what_cannot_be_written_is_refused_and_leaves_nothing(calibration, video, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    upwards = replace(calibration, camera=calibration.camera.with_readout_ratio(-0.7))
    stretch = upwards.stretches[0]
    upwards = replace(upwards, stretches=(replace(stretch, scene=replace(stretch.scene, camera=upwards.camera)),))
    later = replace(stretch, frame_numbers=stretch.frame_numbers + 1)
    wide = replace(calibration, camera=replace(calibration.camera, width=640))
    for given, kind, folder, words in (
        (calibration, "colmap", "full", "is there and not empty"),
        (calibration, "splats", "out", "expected one of colmap, nerfstudio, ncore"),
        (upwards, "nerfstudio", "out", "cannot hold a sensor that reads bottom to top"),
        (replace(calibration, stretches=(later,)), "colmap", "out", "frame_000000 is not number 1"),
        (replace(calibration, stretches=()), "colmap", "out", "stretches.npz"),
        (wide, "nerfstudio", "out", "the calibration is for 640 x 240"),
    ):
        with pytest.raises(InputError, match=words):
            write_dataset(video, given, kind, tmp_path / folder)
    for wrong, words in (({"every": 0}, "every is 0"), ({"sharpest": True}, "every 3"), ({"images": "gif"}, "gif")):
        with pytest.raises(InputError, match=words):
            DatasetOptions(**wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_new_folder_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "a" / "b") as folder:
        (folder / "images").mkdir()
        raise ZeroDivisionError
    assert not any(tmp_path.iterdir())
    (tmp_path / "empty").mkdir()
    with new_folder(tmp_path / "empty") as folder:
        (folder / "images").mkdir()
        assert not any((tmp_path / "empty").iterdir())
    assert [path.name for path in (tmp_path / "empty").iterdir()] == ["images"]


def test_the_example_trains_on_both(rectified, as_filmed, tmp_path, capsys):
    """A few steps of a few rays: that it reads both datasets, and that their rays meet; `benchmarks dataset` trains."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("PIL", reason="Pillow is not installed")
    script = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "train_field.py"))
    figures = script["main"](
        ["--rolling", str(as_filmed), "--rectified", str(rectified[0]), "--steps", "3", "--rays", "32", "--log2-size",
         "10", "--shrink", "32", "--device", "cpu", "--output", str(tmp_path)]
    )  # fmt: skip
    assert list(figures) == ["rolling", "rectified", "ignored in training"]
    assert json.loads((tmp_path / "figures.json").read_text())["fields"] == figures
    assert all(8 < found["own_db"] < 30 for found in figures.values())
    # The rays of both datasets meet: a pixel of the pinhole's centre looks the same way in both.
    rolling = script["load_rolling"](as_filmed, 1).still()
    pinhole = script["load_rectified"](rectified[0], 1)
    torch = __import__("torch")
    row = torch.tensor([HEIGHT // 2])
    for view in (0, 7):
        columns = [torch.tensor([int(one.directions[HEIGHT // 2, :, 0].abs().argmin())]) for one in (rolling, pinhole)]
        rays = [
            one.rays(torch.tensor([view]), row, column) for one, column in zip((rolling, pinhole), columns, strict=True)
        ]
        np.testing.assert_allclose(rays[0][0], rays[1][0], atol=1e-4)
        assert float((rays[0][1] * rays[1][1]).sum()) > 1 - 1e-4
