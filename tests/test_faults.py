"""Faults of cameras and clocks: what they do to pixels and times, and that they are as strong as asked."""

from dataclasses import replace

import av
import cv2
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.ndimage import map_coordinates
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.footage.image_folder import ImageFolder
from rssc.footage.video import Video
from rssc.model.poses import rotate_to_world, transform_points
from rssc.simulation import ClipOptions, render_clip, simulate_scene
from rssc.simulation.clip import typical_lens
from rssc.simulation.faults import FAULTS, Faults, FaultyClip, faulty_scene, make_faults
from rssc.simulation.faults.capture import (
    capture_jitter,
    dropped_and_repeated,
    dropped_frames,
    even_capture,
    slow_motion,
    stamp_jitter,
)
from rssc.simulation.faults.electronic import electronic_stabilisation
from rssc.simulation.faults.fast_rotation import centre_shift, fast_rotation, sample_times
from rssc.simulation.faults.faulty_tracks import faulty_pixels
from rssc.simulation.faults.files import write_stamped_images, write_stamped_video
from rssc.simulation.faults.lens_motion import focus_breathing, optical_stabilisation, zoom
from rssc.simulation.faults.projection import faulty_project

COUNT = 24
STRENGTHS = {
    "optical_stabilisation": 1.0, "focus_breathing": 0.03, "zoom": 0.1, "electronic_shift": 0.5,
    "electronic_rotation": 0.5, "electronic_rows": 0.5, "capture_jitter": 0.05, "stamp_jitter": 0.05,
    "dropped_frames": 2, "dropped_and_repeated": 5, "slow_motion": 4, "tagged_slow_motion": 4,
}  # fmt: skip
LENS_FAULTS = ("optical_stabilisation", "focus_breathing", "zoom")
ELECTRONIC = ("electronic_shift", "electronic_rotation", "electronic_rows")


def small_clip(axis="rows", lens="radial", exposure=0.0, readout=0.8, noise=0.0):
    options = ClipOptions(
        160, 120, COUNT, lens=typical_lens(lens, 160, 120), readout_ratio=readout, axis=axis, motion="shaky", seed=3,
        image_noise=noise, exposure=exposure, exposure_samples=2,
    )  # fmt: skip
    return render_clip(options)


def faults_of(kind, clip, strength=None):
    strength = STRENGTHS[kind] if strength is None else strength
    return make_faults(kind, strength, clip.motion, clip.camera, len(clip), seed=1)


@pytest.fixture(scope="module")
def simulated():
    return simulate_scene(5, frame_count=30, point_count=120, pixel_noise=0.2, trajectory_noise_hz=3.0)


def rms(offsets):
    return np.sqrt((offsets**2).sum(axis=1).mean())


def test_every_fault_has_a_strength_here():
    assert set(STRENGTHS) == set(FAULTS)
    with pytest.raises(InputError, match="fault is 'none'"):
        make_faults("none", 1.0, small_clip().motion, small_clip().camera, COUNT)


def test_fast_rotation_leaves_out_slow_turns_and_keeps_fast_ones():
    clip = small_clip()
    times = sample_times(90)
    angles = {}
    for hz in (0.05, 6.0):
        waves = replace(
            clip.motion.angles, offset=np.zeros(3), frequencies=np.full((1, 3), hz), phases=np.zeros((1, 3)),
            amplitudes=np.array([[0.02, 0.0, 0.0]]),
        )  # fmt: skip
        still = replace(
            clip.motion,
            angles=waves,
            position=replace(clip.motion.position, amplitudes=0 * clip.motion.position.amplitudes),
        )
        angles[hz] = fast_rotation(still, times)
    assert np.abs(angles[0.05]).max() < 0.01 * 0.02
    yaw = np.abs(angles[6.0][:, 1]).max()
    assert yaw == pytest.approx(0.02, rel=0.1) and np.abs(angles[6.0][:, [0, 2]]).max() < 0.2 * yaw


@pytest.mark.parametrize("strength", [0.0, 0.1, 2.0])
def test_optical_stabilisation_is_as_strong_as_asked_and_against_the_rotation(strength):
    clip = small_clip()
    lens = optical_stabilisation(clip.motion, clip.camera, COUNT, strength)
    times = np.linspace(0, COUNT, 500)
    offsets = lens.offsets(times)
    assert rms(offsets) == pytest.approx(strength, rel=0.02, abs=1e-12)
    assert np.linalg.norm(offsets, axis=1).max() <= 2.5 * strength * 1.001
    if strength:
        grid = sample_times(COUNT)
        shifts = centre_shift(clip.camera.lens, fast_rotation(clip.motion, grid))
        assert (lens.offsets(grid) * shifts).sum(axis=1).max() <= 0
        later = lens.offsets(times + 0.4)
        assert np.abs(later - offsets).max() > 0.1 * strength, "it moves while a frame is read"


def test_a_lens_does_not_take_back_more_than_there_is():
    clip = small_clip()
    with pytest.raises(InputError, match="more than the fast rotation"):
        optical_stabilisation(clip.motion, clip.camera, COUNT, 50.0)
    with pytest.raises(InputError, match="from 0 to 1"):
        electronic_stabilisation(clip.motion, clip.camera, COUNT, 1.2, "shift")


def test_optical_stabilisation_steadies_the_image():
    """A far point moves less from frame to frame than without."""
    clip = small_clip(lens="pinhole", readout=0.0)
    middle = np.array([[80.0, 60.0]])
    far = clip.world_points(0, middle) * 1e4
    plain = FaultyClip(clip, Faults(even_capture(COUNT)))
    steadied = FaultyClip(clip, faults_of("optical_stabilisation", clip, 3.0))

    def roughness(shown):
        path = np.array([shown.observe(far, i)[0] for i in range(COUNT)])
        return np.abs(np.diff(path, 2, axis=0)).mean()

    assert roughness(steadied) < 0.95 * roughness(plain)


def test_focal_lengths_change_by_the_share_that_is_asked():
    clip = small_clip()
    times = np.linspace(0, COUNT, 400)
    for make in (
        lambda rng: focus_breathing(rng, clip.motion, clip.camera, COUNT, 0.02),
        lambda rng: zoom(rng, clip.camera, COUNT, 0.02),
    ):
        lens = make(np.random.default_rng(0))
        scales = lens.scales(times)[:, 0]
        assert scales.max() / scales.min() - 1 == pytest.approx(0.02, rel=0.01)
        assert scales.mean() == pytest.approx(1, abs=1e-4)
        assert np.abs(np.diff(scales)).max() < 0.002
        corner = np.array([[0.0, 0.0]])
        grown = lens.moved(corner, times[:1]) - lens.centre
        np.testing.assert_allclose(grown, scales[0] * (corner - lens.centre), rtol=1e-12)
    with pytest.raises(InputError, match="share"):
        zoom(np.random.default_rng(0), clip.camera, COUNT, -0.1)


@pytest.mark.parametrize("kind", LENS_FAULTS)
def test_a_moved_lens_moves_back(kind):
    clip = small_clip()
    lens = faults_of(kind, clip).lens
    rng = np.random.default_rng(0)
    pixels, times = rng.uniform(0, 120, (50, 2)), rng.uniform(0, COUNT, 50)
    moved = lens.moved(pixels, times)
    assert np.abs(moved - pixels).max() > 0.05
    np.testing.assert_allclose(lens.at_rest(moved, times), pixels, atol=1e-10)


def test_jitter_is_of_the_capture_or_of_the_stamps():
    taken, stamped = (make(np.random.default_rng(0), 200, 0.03) for make in (capture_jitter, stamp_jitter))
    even = np.arange(200)
    assert np.sqrt(((taken.captured - even) ** 2).mean()) == pytest.approx(0.03, rel=1e-6)
    assert np.sqrt(((stamped.stamps - even) ** 2).mean()) == pytest.approx(0.03, rel=1e-6)
    assert np.array_equal(taken.stamps, even) and np.array_equal(stamped.captured, even)
    gross = stamp_jitter(np.random.default_rng(0), 200, 0.4)
    assert (np.diff(gross.stamps) > 0).all()


def test_frames_are_dropped_one_by_one_and_renumbered():
    for seed in range(20):
        capture = dropped_frames(np.random.default_rng(seed), 30, 4)
        assert len(capture) == 26 and np.array_equal(capture.stamps, np.arange(26))
        steps = np.diff(capture.captured)
        assert (steps == 2).sum() == 4 and (steps == 1).sum() == 21
        assert capture.captured[0] == 0 and capture.captured[-1] == 29
    assert len(dropped_frames(np.random.default_rng(0), 30, 0)) == 30
    with pytest.raises(InputError, match="fewer than half"):
        dropped_frames(np.random.default_rng(0), 30, 20)


def test_between_a_drop_and_a_repeat_stamps_are_a_frame_early():
    for seed in range(20):
        capture = dropped_and_repeated(np.random.default_rng(seed), 30, 7)
        assert len(capture) == 30 and capture.repeated.sum() == 1
        late = capture.captured - capture.stamps
        assert (late == 1).sum() == 7 and (late == 0).sum() == 23
        assert late[0] == late[-1] == 0 and (np.diff(np.flatnonzero(late)) == 1).all()
    with pytest.raises(InputError, match="do not fit"):
        dropped_and_repeated(np.random.default_rng(0), 30, 30)


def test_slow_motion_plays_slower_and_says_so_where_it_has_a_tag(tmp_path):
    frames = np.random.default_rng(0).integers(0, 255, (8, 32, 48), dtype=np.uint8)
    for tagged in (False, True):
        capture = slow_motion(8, 4.0, tagged)
        stamps = capture.stamps_s(120.0)
        assert np.diff(stamps) == pytest.approx(1 / 30)
        path = tmp_path / f"{tagged}.mp4"
        write_stamped_video(frames, path, stamps, {k: v.format(fps=120.0) for k, v in capture.tags.items()})
        assert np.diff(Video(path, None).times_s) == pytest.approx(1 / 30, abs=1e-5)
        with av.open(str(path)) as container:
            assert container.metadata.get("com.android.capture.fps") == ("120.0" if tagged else None)
    with pytest.raises(InputError, match="positive"):
        slow_motion(8, 0.0, False)


def test_stamps_reach_the_reader(tmp_path):
    frames = np.random.default_rng(0).integers(0, 255, (12, 32, 48), dtype=np.uint8)
    stamps = stamp_jitter(np.random.default_rng(1), 12, 0.1).stamps_s(30.0)
    write_stamped_video(frames, tmp_path / "clip.mp4", stamps, {})
    assert Video(tmp_path / "clip.mp4", None).times_s == pytest.approx(stamps - stamps[0], abs=1e-5)
    folder = tmp_path / "images"
    folder.mkdir()
    write_stamped_images(frames, folder, stamps)
    read = ImageFolder(folder, None)
    assert read.times_s == pytest.approx(stamps - stamps[0], abs=1e-5)
    assert all(np.array_equal(image, frames[i]) for i, image in read.read(np.arange(12)))


def test_without_faults_frames_are_those_of_the_clip_bit_for_bit():
    for axis, exposure in (("rows", 0.5), ("columns", 0.0)):
        clip = small_clip(axis, exposure=exposure, noise=2.0)
        for kind in ("optical_stabilisation", "focus_breathing"):
            faulty = FaultyClip(clip, faults_of(kind, clip, 0.0))
            assert np.array_equal(faulty.frame(5), clip.frame(5))
        assert np.array_equal(FaultyClip(clip, Faults(even_capture(COUNT))).frame(7), clip.frame(7))


@pytest.mark.parametrize("axis", ["rows", "columns"])
@pytest.mark.parametrize("kind", [*LENS_FAULTS, *ELECTRONIC, "capture_jitter", "dropped_frames"])
def test_frames_show_points_where_the_projection_says(kind, axis):
    """Frames with the fault and without are the same picture, moved: they agree best at the exact places."""
    clip = small_clip(axis)
    faulty = FaultyClip(clip, faults_of(kind, clip))
    plain = FaultyClip(clip, Faults(even_capture(COUNT)))
    index = 20 if kind == "focus_breathing" else 14  # where it is well off its mean
    x, y = np.meshgrid(np.arange(30, 130, 2.0), np.arange(30, 90, 2.0))
    pixels = np.stack((x.ravel(), y.ravel()), axis=1)
    points = clip.world_points(index, pixels)
    exact = faulty.observe(points, index)
    np.testing.assert_allclose(plain.observe(points, index), pixels, atol=1e-6)
    assert np.median(np.linalg.norm(exact - pixels, axis=1)) > 0.2
    image, reference = (
        cv2.GaussianBlur(one.astype(np.float32), (0, 0), 1.5) for one in (faulty.frame(index), clip.frame(index))
    )
    wanted = reference[pixels[:, 1].astype(int), pixels[:, 0].astype(int)]

    def sampled(*offset):
        return map_coordinates(image, (exact + offset).T[::-1], order=3)

    # The shift that is left, by one step of least squares on what is not hidden in one of the frames.
    gradient = np.stack((sampled(0.5, 0) - sampled(-0.5, 0), sampled(0, 0.5) - sampled(0, -0.5)), axis=1)
    left = wanted - sampled(0, 0)
    shown = np.abs(left) < 8
    shift = np.linalg.lstsq(gradient[shown], left[shown])[0]
    assert shown.mean() > 0.9 and np.abs(shift).max() < 0.02 and np.abs(left[shown]).std() < 1.0


@pytest.mark.parametrize("kind", list(FAULTS))
def test_simulated_tracks_have_the_fault_and_the_same_noise(simulated, kind):
    truth = simulated.truth
    faults = make_faults(kind, STRENGTHS[kind], simulated.motion, truth.camera, truth.tracks.frame_count, seed=2)
    faulty = faulty_scene(simulated, faults)
    tracks = faulty.truth.tracks
    once = ~faults.capture.repeated
    assert tracks.frame_count == once.sum() == faulty.scene.tracks.frame_count
    assert tracks.lengths.min() >= 3 and len(faulty.outliers) == len(tracks) == len(faulty.scene.tracks)
    np.testing.assert_array_equal(faulty.truth.frame_times, faults.capture.captured[once])
    np.testing.assert_array_equal(faulty.scene.frame_times, faults.capture.stamps[once])
    noise = faulty.scene.tracks.pixels - tracks.pixels
    assert noise.std() == pytest.approx(0.2, rel=0.05)
    # The truth is right: nothing but the fault lies between its pixels and its camera, motion and times.
    times = faulty.truth.row_times(tracks.pixels, tracks.frames)
    local = transform_points(simulated.motion.cam_from_world(times), faulty.truth.points[tracks.points])
    rigid = truth.camera.lens.project(local)
    if kind in LENS_FAULTS:
        np.testing.assert_allclose(faults.lens.moved(rigid, times), tracks.pixels, atol=1e-8)
        assert np.abs(rigid - tracks.pixels).max() > 0.5
    elif kind not in ELECTRONIC:
        np.testing.assert_allclose(rigid, tracks.pixels, atol=1e-8)


def test_tracks_of_shifted_crops_are_offset_by_frame(simulated):
    truth = simulated.truth
    faults = make_faults("electronic_shift", 0.4, simulated.motion, truth.camera, truth.tracks.frame_count)
    kept, pixels = faulty_pixels(truth, simulated.motion, faults)
    offsets = (pixels - truth.tracks.pixels)[kept]
    frames = truth.tracks.frames[kept]
    means = np.stack([offsets[frames == i].mean(axis=0) for i in range(truth.tracks.frame_count)])
    times = sample_times(truth.tracks.frame_count)
    fast = CubicSpline(times, fast_rotation(simulated.motion, times))(np.arange(truth.tracks.frame_count) + 0.25)
    np.testing.assert_allclose(means, -0.4 * centre_shift(truth.camera.lens, fast), atol=1e-9)
    assert rms(means) > 1.0
    np.testing.assert_allclose(offsets, means[frames], atol=1e-9)


@pytest.mark.parametrize("lens", ["pinhole", "thin_prism_fisheye"])
@pytest.mark.parametrize("kind", ELECTRONIC)
def test_warps_of_frames_are_interpolated_well(kind, lens):
    clip = small_clip(lens=lens)
    faulty = FaultyClip(clip, faults_of(kind, clip, 0.4))
    x, y = faulty.warp(9)
    u, v = np.meshgrid(np.arange(3, 160, 7), np.arange(2, 120, 7))
    pixels = np.stack((u.ravel(), v.ravel()), axis=1).astype(float)
    exact = faulty.faults.stabiliser.sensor_pixels(pixels, np.full(len(pixels), 9))
    np.testing.assert_allclose(np.stack((x[v, u].ravel(), y[v, u].ravel()), axis=1), exact, atol=1e-4)


@pytest.mark.parametrize("kind", ELECTRONIC)
def test_electronic_warps_are_undone_by_their_inverse(simulated, kind):
    camera = simulated.truth.camera
    stabiliser = make_faults(kind, 0.5, simulated.motion, camera, 30).stabiliser
    rng = np.random.default_rng(0)
    pixels, frames = rng.uniform(0, 1000, (200, 2)), rng.integers(0, 30, 200)
    shown = stabiliser.sensor_pixels(pixels, frames)
    assert np.abs(shown - pixels).max() > 5
    np.testing.assert_allclose(stabiliser.image_pixels(shown, frames), pixels, atol=1e-6)
    edge = np.array([[u, v] for u in (0.0, 640.0, 1279.0) for v in (0.0, 500.0, 1023.0)])
    there = stabiliser.sensor_pixels(np.tile(edge, (30, 1)), np.repeat(np.arange(30), len(edge)))
    beyond = np.maximum(-there, there - (1279, 1023)).max()
    assert beyond + 5 <= stabiliser.margin() <= beyond + 10


def test_row_correction_makes_a_turning_camera_look_global(simulated):
    """What is far away moves as under a global shutter: the fault that the readout alone would have is gone."""
    truth, motion = simulated.truth, simulated.motion
    far = 1e6 * rotate_to_world(motion.cam_from_world(np.array([10.4])), truth.camera.lens.unproject([[300.0, 200.0]]))
    frames = np.array([10])
    rows = make_faults("electronic_rows", 1.0, motion, truth.camera, 30)
    shown = faulty_project(truth.camera, motion, far, frames, rows)
    turned = Rotation.from_rotvec(rows.stabiliser.angles[10]).as_matrix().T
    middle = motion.cam_from_world(np.array([10 + 0.5 * truth.camera.shutter.readout_ratio]))
    np.testing.assert_allclose(shown, truth.camera.lens.project(transform_points(middle, far) @ turned.T), atol=1e-3)


def test_outliers_stay_where_they_are():
    simulated = simulate_scene(6, frame_count=12, point_count=60, outlier_fraction=0.1)
    faults = make_faults("focus_breathing", 0.02, simulated.motion, simulated.truth.camera, 12)
    faulty = faulty_scene(simulated, faults)
    before = {tuple(pixel) for pixel in simulated.scene.tracks.pixels[simulated.outliers]}
    after = {tuple(pixel) for pixel in faulty.scene.tracks.pixels[faulty.outliers]}
    assert len(after) > 10 and after <= before


def test_what_cannot_be_filmed_is_refused():
    clip = small_clip()
    with pytest.raises(InputError, match="knows its lens"):
        FaultyClip(
            replace(clip, options=replace(clip.options, optics=clip.camera.lens)), faults_of("electronic_shift", clip)
        )
