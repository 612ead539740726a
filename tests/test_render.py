"""Rendered clips: images, truth and files agree with each other."""

import json
from dataclasses import replace

import av
import cv2
import numpy as np
import pytest

from rssc.errors import InputError
from rssc.model import Lens
from rssc.model.poses import camera_centres
from rssc.simulation import ClipOptions, render_clip, write_clip
from rssc.simulation.clip import make_clip
from rssc.simulation.clip_files import truth_document, write_video
from rssc.simulation.motion import Waves
from rssc.simulation.optics import UnmodelledLens
from rssc.simulation.world import BALL, BOX, Mover, World, build_world, make_solid, random_looks

SMALL = {"width": 200, "height": 150, "frame_count": 4, "image_noise": 0.0}
UNMODELLED = {
    "arctangent": UnmodelledLens("arctangent", 120, 119, 101, 74, (0.9,), tangential=(1e-3, -2e-3)),
    "division": UnmodelledLens("division", 140, 141, 98, 76, (-0.3,), tilt=(0.03, -0.02)),
    "rational": UnmodelledLens(
        "rational", 130, 129, 101, 74, (0.25, 0.06, 0.004, 0.4, 0.1, 0.01), (1e-3, -8e-4), (1e-3, 2e-4, -8e-4, 1e-4)
    ),
}
LENSES = {
    "pinhole": None,
    "radial": Lens("radial", 150, 149, 101, 74, (-0.2, 0.03)),
    "opencv": Lens("opencv", 150, 149, 101, 74, (-0.25, 0.06, 1e-3, -8e-4)),
    "fisheye": Lens("fisheye", 95, 94, 101, 74, (0.02, -0.01, 0.002, 0.0)),
}
SHUTTERS = {"rows": {"readout_ratio": 0.9}, "upwards": {"readout_ratio": -0.6}, "columns": {"axis": "columns"}}


def grid(camera, step=7, margin=3.3):
    u, v = np.meshgrid(np.arange(margin, camera.width - margin, step), np.arange(margin, camera.height - margin, step))
    return np.stack((u.ravel(), v.ravel()), axis=1)


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("shutter", SHUTTERS)
def test_a_pixel_shows_a_point_that_is_seen_at_that_pixel(lens, shutter):
    clip = render_clip(ClipOptions(**SMALL, **SHUTTERS[shutter], lens=LENSES[lens], motion="shaky"))
    pixels = grid(clip.camera)
    seen, visible = clip.observe(clip.world_points(2, pixels), 2)
    np.testing.assert_allclose(seen, pixels, atol=1e-10)
    assert visible.all()


@pytest.mark.parametrize("name", UNMODELLED)
def test_a_lens_of_no_model_shows_what_its_own_projection_says(name):
    optics = UNMODELLED[name]
    clip = render_clip(ClipOptions(**SMALL, optics=optics, motion="shaky", readout_ratio=0.9))
    pixels = grid(clip.camera)
    seen, visible = clip.observe(clip.world_points(2, pixels), 2)
    np.testing.assert_allclose(seen, pixels, atol=1e-7)
    assert visible.all()
    other = render_clip(ClipOptions(**SMALL, motion="shaky", readout_ratio=0.9))
    assert np.mean(clip.frame(2) != other.frame(2)) > 0.5


def test_unmodelled_lenses_agree_with_opencv_and_end_where_they_fold():
    lens = UNMODELLED["rational"]
    rays = np.random.default_rng(0).uniform((-1, -1, 1), (1, 1, 1.5), (50, 3))
    matrix = np.array([[lens.fx, 0, lens.cx], [0, lens.fy, lens.cy], [0, 0, 1.0]])
    for tilt in ((0.0, 0.0), (0.05, -0.03)):
        k1, k2, k3, k4, k5, k6 = lens.radial
        coefficients = np.array([k1, k2, *lens.tangential, k3, k4, k5, k6, *lens.prism, *tilt])
        expected, _ = cv2.projectPoints(rays, np.zeros(3), np.zeros(3), matrix, coefficients)
        np.testing.assert_allclose(replace(lens, tilt=tilt).project(rays), expected[:, 0], atol=1e-9)
    folding = UnmodelledLens("rational", 100, 100, 50, 50, (-0.3, 0, 0, 0, 0, 0))
    assert folding.limit == pytest.approx(np.sqrt(1 / 0.9), rel=0.01)
    assert np.isnan(folding.unproject([[50.0 + 100, 50.0]])).all()
    assert np.isnan(folding.project([[2.0, 0, 1], [0, 0, -1]])).all()
    with pytest.raises(InputError, match="radial"):
        UnmodelledLens("division", 1, 1, 0, 0, (1.0, 2.0))


@pytest.mark.parametrize("shutter", SHUTTERS)
def test_every_row_is_a_row_of_a_global_shutter_at_its_own_time(shutter):
    clip = render_clip(ClipOptions(**SMALL, **SHUTTERS[shutter], motion="shaky"))
    frame = clip.frame(1)
    columns = clip.camera.shutter.axis == "columns"
    count = clip.camera.line_count
    for line in (0, 31, count - 1):
        snapshot = clip.render_global_shutter(1, line / count)
        rolling, still = (frame[:, line], snapshot[:, line]) if columns else (frame[line], snapshot[line])
        # Outlines are found from neighbouring lines, which move with the shutter.
        assert np.mean(rolling == still) > 0.9


@pytest.mark.parametrize("lens", LENSES)
def test_images_show_texture_where_the_truth_says(lens):
    """Patches of one frame, warped by the true geometry into another, lie within hundredths of a pixel."""
    clip = render_clip(ClipOptions(**SMALL, lens=LENSES[lens], world="plane", motion="shaky", readout_ratio=0.9))
    first, second = (clip.frame(i).astype(np.float32) for i in (0, 3))
    right, down = np.array((0.5, 0.0)), np.array((0.0, 0.5))
    offsets = np.stack(np.meshgrid(np.arange(-5, 6), np.arange(-5, 6)), axis=-1).reshape(-1, 2).astype(float)
    shifts = []
    for centre in grid(clip.camera, step=12, margin=8.0):
        points = clip.world_points(0, centre + offsets)
        pixels, visible = clip.observe(points, 3)
        if not visible.all():
            continue
        wanted = _look_up(first, centre + offsets)
        shift = np.zeros(2)
        for _ in range(5):
            here = pixels + shift
            slope = np.stack(
                (
                    _look_up(second, here + right) - _look_up(second, here - right),
                    _look_up(second, here + down) - _look_up(second, here - down),
                ),
                axis=1,
            )
            slope -= slope.mean(axis=0)
            error = wanted - _look_up(second, here)
            shift += np.linalg.lstsq(slope, error - error.mean(), rcond=None)[0]
        shifts.append(shift)
    shifts = np.array(shifts)
    assert len(shifts) > 40
    assert np.all(np.abs(np.median(shifts, axis=0)) < 0.02)
    assert np.median(np.linalg.norm(shifts, axis=1)) < 0.08


def _look_up(image, pixels):
    u, v = pixels.astype(np.float32).T
    return cv2.remap(image, u[:, None], v[:, None], cv2.INTER_CUBIC)[:, 0].astype(float)


def test_hidden_points_are_not_visible():
    clip = render_clip(ClipOptions(**SMALL))
    points = clip.world_points(1, grid(clip.camera))
    centre = camera_centres(clip.motion.cam_from_world([1.0]))[0]
    assert not clip.observe(centre + 1.1 * (points - centre), 1)[1].any()
    _, nearer = clip.observe(centre + 0.9 * (points - centre), 1)
    assert nearer.mean() > 0.9  # those at the border may have left the image, for the centre moves during the readout
    assert not clip.observe(centre - (points - centre), 1)[1].any()


@pytest.mark.parametrize("kind", ["room", "plane"])
def test_rays_end_on_the_first_surface(kind):
    world = build_world(kind, 7)
    rng = np.random.default_rng(0)
    origins = np.tile((0.1, 0.0, -2.5), (2000, 1))
    rays = rng.standard_normal((2000, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    distances = world.cast(origins, rays)
    hit = np.isfinite(distances)
    assert hit.all() if kind == "room" else 0.2 < hit.mean() < 0.8
    for share in (*np.linspace(0.02, 0.98, 25), 1 - 1e-9):
        assert np.all(_depth_inside(world, origins[hit] + share * distances[hit, None] * rays[hit]) < 1e-6)
    end = _depth_inside(world, origins[hit] + distances[hit, None] * rays[hit])
    np.testing.assert_allclose(end, 0, atol=1e-9)


def _depth_inside(world, points):
    """(n,) how deep points are inside matter: positive inside a solid or beyond the room's walls."""
    depth = np.full(len(points), -np.inf)
    for kind, *rest in world.solids:
        centre, half, (cosine, sine) = np.array(rest[:3]), np.array(rest[3:6]), rest[6:8]
        x, y, z = (points - centre).T
        if kind == BALL:
            inside = half[0] - np.sqrt(x**2 + y**2 + z**2)
        else:
            local = np.stack((cosine * x - sine * z, y, sine * x + cosine * z), axis=1)
            inside = np.min(half - np.abs(local), axis=1)
        depth = np.maximum(depth, inside if kind in (BALL, BOX) else -inside)
    return depth


def test_noise_exposure_texture_and_colour():
    options = {**SMALL, "motion": "static"}
    clean = render_clip(ClipOptions(**options)).frame(0).astype(float)
    noisy = render_clip(ClipOptions(**{**options, "image_noise": 4.0})).frame(0).astype(float)
    middle = (clean > 30) & (clean < 220)
    assert (noisy - clean)[middle].std() == pytest.approx(4.0, rel=0.05)
    blurred = render_clip(ClipOptions(**options, exposure=0.5)).frame(0)
    assert np.abs(blurred - clean).max() <= 1
    assert np.abs(np.diff(clean, axis=1)).mean() > 5
    plain = render_clip(ClipOptions(**options, texture=0.0)).frame(0).astype(float)
    assert np.mean(np.diff(plain, axis=1) == 0) > 0.9
    colour = render_clip(ClipOptions(**options, colour=True)).frame(0)
    assert colour.shape == (150, 200, 3)
    np.testing.assert_allclose(colour @ (0.299, 0.587, 0.114), clean, atol=3)


def test_the_truth_has_the_exposure():
    document = truth_document(render_clip(ClipOptions(**SMALL, exposure=0.5)))
    assert document["shutter"]["exposure_ratio"] == 0.5
    assert document["shutter"]["exposure_time_s"] == 0.5 * document["shutter"]["frame_interval_s"]


def test_exposure_blurs_motion():
    sharp, blurred = (render_clip(ClipOptions(**SMALL, motion="shaky", exposure=e)).frame(2) for e in (0.0, 0.5))
    detail = [np.abs(np.diff(image.astype(float), axis=1)).mean() for image in (sharp, blurred)]
    assert detail[1] < 0.9 * detail[0]


def test_exposures_have_as_many_moments_as_the_motion_needs():
    options = ClipOptions(**SMALL, motion="shaky", exposure=0.8)
    fine = render_clip(replace(options, exposure_samples=40)).frame(2).astype(float)
    chosen = render_clip(replace(options, exposure_samples=None))
    count = chosen._exposure_samples(2)
    assert 2 <= count < 40
    assert count >= 0.8 * np.median(chosen.image_speeds(2))
    assert np.abs(chosen.frame(2) - fine).mean() < 1.0
    assert np.abs(render_clip(replace(options, exposure_samples=1)).frame(2) - fine).mean() > 3.0
    still = render_clip(replace(options, motion="static", exposure_samples=None))
    assert still._exposure_samples(2) == 2


def test_movers_are_seen_where_they_are_at_the_time_of_each_row():
    options = ClipOptions(**SMALL, motion="static", readout_ratio=1.0)
    plain = render_clip(options)
    ball = make_solid(BALL, (0.0, 0.0, -1.0), (0.2,) * 3, 0.0, 400.0)
    path = Waves.constant((-0.6, 0.0, 0.0), rate=(9.0, 0.0, 0.0))
    solids = [*plain.world.solids, ball]
    looks = random_looks(np.random.default_rng(0), solids)
    looks[:-1] = plain.world.looks
    world = World(np.array(solids), looks, plain.world.texture, (Mover(len(solids) - 1, path),))
    clip = make_clip(options, plain.motion, world)
    frame, without = clip.frame(1), plain.frame(1)
    pixels = grid(clip.camera, step=3)
    shown = clip.world_points(1, pixels)
    moving = np.isnan(shown[:, 0])
    assert 20 < moving.sum() < 0.3 * len(pixels)
    u, v = np.round(pixels).astype(int).T
    changed = frame[v, u] != without[v, u]
    assert changed[moving].mean() > 0.8 and changed[~moving].mean() < 0.05
    # The ball moves to the right while rows are read downwards.
    rows = pixels[moving, 1]
    lower, upper = rows > np.median(rows) + 5, rows < np.median(rows) - 5
    assert pixels[moving][lower, 0].mean() > pixels[moving][upper, 0].mean() + 2
    _, visible = clip.observe(plain.world_points(1, pixels), 1)
    np.testing.assert_array_equal(visible, ~moving)


def test_frames_are_reproducible_and_alike():
    options = ClipOptions(width=120, height=90, frame_count=3)
    one, two = render_clip(options), render_clip(options)
    np.testing.assert_array_equal(one.frames, two.frames)
    np.testing.assert_array_equal(one.frames[2], two.frame(2))
    assert one.frames.shape == (3, 90, 120)
    assert one.frames.dtype == np.uint8


@pytest.mark.parametrize("video", [True, False])
def test_written_clip_holds_frames_and_truth(tmp_path, video):
    options = ClipOptions(**SMALL, readout_ratio=-0.6, frames_per_second=29.97, colour=video)
    clip = render_clip(options)
    done = []
    write_clip(clip, tmp_path / "out", video=video, report=done.append)
    assert done == [0.25, 0.5, 0.75, 1.0]
    folder = tmp_path / "out"
    names = {path.name for path in folder.iterdir()}
    frames = {"clip.mp4"} if video else {f"frame{i:05d}.png" for i in range(4)}
    assert names == frames | {"truth.json", "trajectory.tum"}
    if video:
        with av.open(str(folder / "clip.mp4")) as container:
            decoded = list(container.decode(video=0))
        np.testing.assert_allclose([float(f.time) for f in decoded], np.arange(4) / 29.97, atol=2e-5)
        for frame, image in zip(decoded, clip, strict=True):
            luma = image @ (0.299, 0.587, 0.114)
            error = frame.to_ndarray(format="rgb24") @ (0.299, 0.587, 0.114) - luma
            assert np.sqrt(np.mean(error**2)) < 4
    else:
        for index, image in enumerate(clip):
            np.testing.assert_array_equal(cv2.imread(str(folder / f"frame{index:05d}.png"), -1), image)
    truth = json.loads((folder / "truth.json").read_text())
    lens = clip.camera.lens
    assert truth["image"] == {"width": 200, "height": 150}
    assert truth["lens"] == {
        "model": "pinhole", "fx": lens.fx, "fy": lens.fy, "cx": lens.cx, "cy": lens.cy, "distortion": [],
    }  # fmt: skip
    assert truth["shutter"]["readout_ratio"] == -0.6
    assert truth["shutter"]["direction"] == "bottom_to_top"
    assert truth["shutter"]["readout_time_s"] == pytest.approx(0.6 / 29.97)
    assert truth["shutter"]["line_delay_s"] == pytest.approx(0.6 / 29.97 / 150)
    trajectory = np.loadtxt(folder / "trajectory.tum")
    poses = clip.motion.cam_from_world(np.arange(4))
    np.testing.assert_allclose(trajectory[:, 0], np.arange(4) / 29.97, atol=1e-9)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", poses[:, :, :3], trajectory[:, 1:4]), -poses[:, :, 3], atol=1e-8)
    x, y, z, w = trajectory[:, 4:].T
    forward = np.stack((2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x**2 + y**2)), axis=1)
    np.testing.assert_allclose(forward, poses[:, 2, :3], atol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {"frame_count": 0},
        {"frames_per_second": 0.0},
        {"exposure": 2.0},
        {"image_noise": -1.0},
        {"texture": 1.5},
        {"exposure_samples": 0},
        {"motion": "swimming"},
        {"world": "moon"},
        {"readout_ratio": 5.0},
    ],
)
def test_bad_options_raise_our_error(options):
    with pytest.raises(InputError):
        render_clip(ClipOptions(**options))


def test_a_larger_rate_factor_makes_a_smaller_and_worse_video(tmp_path):
    frames = render_clip(ClipOptions(**SMALL)).frames
    errors, sizes = [], []
    for crf in (12, 30):
        path = tmp_path / f"{crf}.mp4"
        write_video(frames, path, 25.0, crf=crf, preset="medium")
        with av.open(str(path)) as container:
            decoded = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
        errors.append(np.abs(np.stack(decoded).astype(float) - frames).mean())
        sizes.append(path.stat().st_size)
    assert errors[0] < errors[1] and sizes[0] > 2 * sizes[1]
    with pytest.raises(InputError, match="no frames"):
        write_video([], tmp_path / "none.mp4", 25.0)


def test_odd_sizes_cannot_become_a_video(tmp_path):
    with pytest.raises(InputError, match="even"):
        write_clip(render_clip(ClipOptions(width=121, height=90, frame_count=1)), tmp_path)
