"""Tracks on images whose motion is known exactly."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rssc.errors import InputError, NotCalibratableError
from rssc.kernels.image import registration
from rssc.kernels.image.template import ROWS
from rssc.model import Tracks
from rssc.tracking.refinement import matching_streaks, reference_observations, refine, sharpest_observations
from rssc.tracking.track import TrackingOptions, track

WIDTH, HEIGHT = 400, 300
HALF = 10


def scene(seed: int) -> np.ndarray:
    """A texture at three times the resolution of the views, so that resampling it adds no error."""
    rng = np.random.default_rng(seed)
    layers = [cv2.GaussianBlur(rng.standard_normal((1500, 1800)).astype(np.float32), (0, 0), s) for s in (3.5, 8, 20)]
    return np.float32(128) + np.float32(22) * sum(layer / layer.std() for layer in layers)


SCENE = scene(0)


def view(scene_from_image: np.ndarray, seed: int, texture: np.ndarray = SCENE) -> np.ndarray:
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    image = cv2.warpPerspective(texture, scene_from_image, (WIDTH, HEIGHT), flags=flags, borderMode=cv2.BORDER_REFLECT)
    return np.clip(np.rint(image + np.random.default_rng(seed).normal(0, 1.5, image.shape)), 0, 255).astype(np.uint8)


def homography(shift_x: float, shift_y: float, angle: float = 0.0, scale: float = 1.0, tilt: float = 0.0) -> np.ndarray:
    """Scene from image: three scene pixels for one of the image, around the middle of both."""
    c, s = 3 * scale * np.cos(angle), 3 * scale * np.sin(angle)
    around = np.array([[1, 0, -WIDTH / 2], [0, 1, -HEIGHT / 2], [0, 0, 1.0]])
    return np.array([[c, -s, 900 + 3 * shift_x], [s, c, 750 + 3 * shift_y], [tilt, 0, 1.0]]) @ around


def moved(pixels: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Pixels of one view in another."""
    return cv2.perspectiveTransform(pixels[:, None], np.linalg.inv(target) @ source)[:, 0]


@pytest.fixture(scope="module")
def shaken():
    """Twelve frames of a plane that pans, turns and tilts, their homographies and their tracks."""
    motions = [
        homography(6 * np.sin(i) + 5 * i, 8 * np.cos(0.7 * i), 0.02 * np.sin(i), 1 + 0.01 * i, 4e-5 * np.cos(i))
        for i in range(12)
    ]
    images = np.stack([view(motion, i) for i, motion in enumerate(motions)])
    return images, motions, track(images, TrackingOptions(target=200))


def true_pixels(tracks, motions, references) -> np.ndarray:
    truth = np.empty((len(tracks), 2))
    for k in range(len(tracks)):
        r = references[tracks.points[k]]
        truth[k] = moved(tracks.pixels[r][None], motions[tracks.frames[r]], motions[tracks.frames[k]])[0]
    return truth


def test_tracks_are_sub_pixel_and_do_not_drift(shaken):
    _, motions, tracks = shaken
    first = tracks.offsets[:-1]
    error = np.linalg.norm(tracks.pixels - true_pixels(tracks, motions, first), axis=1)
    age = tracks.frames - tracks.frames[first][tracks.points]
    assert np.median(error[age == 1]) < 0.04
    assert np.median(error[age >= 8]) < 0.04
    assert np.mean(error > 0.5) < 0.002
    in_sigmas = error[age > 0] / (np.sqrt(2) * tracks.sigmas[age > 0])
    assert 0.5 < np.sqrt(np.mean(in_sigmas**2)) < 1.7


def test_tracks_have_no_gaps_and_cover_the_image(shaken):
    _, _, tracks = shaken
    same = np.diff(tracks.points) == 0
    assert np.all(np.diff(tracks.frames)[same] == 1)
    assert tracks.lengths.min() >= TrackingOptions().min_length
    assert np.bincount(tracks.frames).min() > 120
    middle = tracks.pixels[tracks.frames == 6]
    cells = np.histogram2d(middle[:, 0], middle[:, 1], bins=(4, 3), range=((0, WIDTH), (0, HEIGHT)))[0]
    assert cells.min() >= 4


def test_long_tracks_are_cut_at_different_frames():
    frames = np.concatenate([np.tile(np.arange(250), 40), np.arange(60)])
    points = np.concatenate([np.repeat(np.arange(40), 250), np.full(60, 40)])
    tracks = Tracks(250, 41, frames, points, np.column_stack([frames, points]))
    pieces = tracks.cut(100)
    first, last = pieces.frames[pieces.offsets[:-1]], pieces.frames[pieces.offsets[1:] - 1]
    assert (last - first < 100).all() and pieces.lengths.sum() == len(tracks)
    np.testing.assert_array_equal(pieces.pixels[:, 0], pieces.frames)
    owners = pieces.pixels[:, 1]
    assert all(len(np.unique(owners[pieces.points == p])) == 1 for p in range(pieces.point_count))
    # The short one is whole, and every pair of neighbouring frames is bridged by most of the pieces.
    assert pieces.lengths[-1] == 60
    bridges = np.bincount(pieces.frames[1:][np.diff(pieces.points) == 0], minlength=250)
    assert bridges[1:].min() >= 37


def test_outlines_do_not_become_tracks():
    other = scene(1)
    images, shifts = [], [4.0 * i for i in range(10)]
    for i, shift in enumerate(shifts):
        image = view(homography(0.5 * i, 0), i)
        window = view(homography(-shift, 0), 100 + i, other)
        left = round(120 + shift)
        image[80:220, left : left + 120] = window[80:220, left : left + 120]
        images.append(image)
    tracks = track(np.stack(images), TrackingOptions(target=250))
    first = tracks.offsets[:-1]
    front, back = np.array([4.0, 0.0]), np.array([-0.5, 0.0])
    age = (tracks.frames - tracks.frames[first][tracks.points])[:, None]
    offset = tracks.pixels - tracks.pixels[first][tracks.points]
    error = np.minimum(np.linalg.norm(offset - age * front, axis=1), np.linalg.norm(offset - age * back, axis=1))
    worst = np.zeros(tracks.point_count)
    np.maximum.at(worst, tracks.points, error)
    assert np.mean(worst > 1.0) < 0.02


def test_refinement_reaches_the_truth_from_predictions_nearby(shaken):
    images, motions, tracks = shaken
    references = reference_observations(tracks)
    truth = true_pixels(tracks, motions, references)
    rng = np.random.default_rng(0)
    predicted = truth + rng.normal(0, 0.4, truth.shape)
    lost = rng.random(len(tracks)) < 0.1
    lost[references] = False
    predicted[lost] = np.nan
    refined = refine(
        images, tracks, predicted, np.tile(np.eye(2), (len(tracks), 1, 1)), np.zeros((len(tracks), 2, 3))
    ).tracks
    rows = np.searchsorted(tracks.points * 100 + tracks.frames, refined.points * 100 + refined.frames)
    error = np.linalg.norm(refined.pixels - truth[rows], axis=1)
    assert not lost[rows].any()
    assert refined.point_count == tracks.point_count
    assert len(refined) > 0.85 * np.count_nonzero(~lost)
    assert np.median(error) < 0.04 and np.mean(error > 0.5) < 0.002


def blurred_view(shift: tuple[float, float], streak: np.ndarray, seed: int) -> np.ndarray:
    """A view that moves along s (du, dv) + s^2 (cu, cv) while it is exposed, around the given shift."""
    moments = (np.arange(41) + 0.5) / 41 - 0.5
    path = np.outer(moments, streak[:2]) + np.outer(moments**2, streak[2:])
    images = [view(homography(*(np.array(shift) - step)), 0).astype(np.float32) for step in path]
    # The noise of `view` is the same in all of them: an image of it that does not move.
    still = view(homography(*shift), 0).astype(np.float32) - view_without_noise(homography(*shift))
    noise = np.random.default_rng(seed).normal(0, 1.5, still.shape)
    return np.clip(np.rint(np.mean(images, axis=0) - still + noise), 0, 255).astype(np.uint8)


def view_without_noise(scene_from_image: np.ndarray) -> np.ndarray:
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return cv2.warpPerspective(SCENE, scene_from_image, (WIDTH, HEIGHT), flags=flags, borderMode=cv2.BORDER_REFLECT)


def test_blurred_views_are_registered_where_their_mean_is():
    """Each view blurred in its own direction, also skewed: templates with the same blur find it, sharp ones do not."""
    streaks = np.array([[2.5, 0, 0, 0], [1.0, 0.5, 0, 0], [8, 0, 2.4, 0], [5, 5, -1.2, -1.2], [-3, 7, 0, 0]], float)
    shifts = [(0.0, 0.0), (3.3, 1.2), (5.1, -2.4), (2.6, 4.7), (-4.2, 1.9)]
    images = np.stack([
        blurred_view(shift, streak, i) for i, (shift, streak) in enumerate(zip(shifts, streaks, strict=True))
    ])  # fmt: skip
    u, v = np.meshgrid(np.linspace(60, 340, 12), np.linspace(60, 240, 9))
    grid = np.column_stack([u.ravel(), v.ravel()])
    count, views = len(grid), len(shifts)
    # A view shifted to the right shows the scene further left. The mean lies a twelfth of the curve from the middle.
    truth = grid[:, None] - np.array(shifts) + np.where(np.arange(views)[:, None] >= 0, streaks[:, 2:] / 12, 0)
    tracks = Tracks(
        views, count, np.tile(np.arange(views), count), np.repeat(np.arange(count), views), truth.reshape(-1, 2)
    )  # fmt: skip
    every = np.tile(streaks, (count, 1))
    references = sharpest_observations(tracks, every)
    assert (tracks.frames[references] == 1).all()
    plain = np.tile(np.eye(2), (len(tracks), 1, 1)), np.zeros((len(tracks), 2, 3))

    def errors(given):
        found = refine(images, tracks, tracks.pixels, *plain, references, given)
        kept = np.flatnonzero(tracks.frames[found.rows] != 1)
        return np.linalg.norm(found.tracks.pixels[kept] - tracks.pixels[found.rows[kept]], axis=1)

    matched, skewless, sharp = errors(every), errors(every * (1, 1, 0, 0)), errors(None)
    assert len(matched) >= len(sharp)
    assert np.median(matched) < 0.04
    assert np.median(matched) < 0.8 * np.median(skewless) and np.median(matched) < 0.4 * np.median(sharp)


def test_template_and_image_are_blurred_to_the_same_covariance(rng):
    tracks = Tracks(4, 5, np.tile(np.arange(4), 5), np.repeat(np.arange(5), 4), rng.uniform(50, 200, (20, 2)))
    streaks, references = rng.normal(0, 4, (20, 4)), tracks.offsets[:-1] + 1
    warps = np.eye(2) + rng.normal(0, 0.1, (20, 2, 2))
    matched = matching_streaks(tracks, references, warps, streaks)

    def outer(lines):
        return lines[:, :, None] * lines[:, None]

    there = np.linalg.inv(warps) @ np.stack([streaks[:, :2], matched[:, 1, :2]], axis=2)
    template = outer(streaks[references][tracks.points][:, :2]) + outer(matched[:, 0, :2])
    np.testing.assert_allclose(template, outer(there[:, :, 0]) + outer(there[:, :, 1]), atol=1e-9)


def test_the_reference_is_the_sharpest_view_near_the_middle():
    tracks = Tracks(7, 2, np.tile(np.arange(7), 2), np.repeat([0, 1], 7), np.zeros((14, 2)))
    lengths = np.array([3.0, 0.2, 5, 6, 7, 0.5, 0.3, 2, 2, 2, 2, 2, 2, 2])
    streaks = np.column_stack([lengths, np.zeros((14, 3))])
    np.testing.assert_array_equal(sharpest_observations(tracks, streaks), [1, 10])
    np.testing.assert_array_equal(sharpest_observations(tracks, 0 * streaks), reference_observations(tracks))


@settings(max_examples=40, deadline=None)
@given(
    angle=st.floats(-0.15, 0.15),
    scale=st.floats(0.85, 1.15),
    shift=st.tuples(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5)),
    gain=st.floats(0.7, 1.3),
    bias=st.floats(-15, 15),
)
def test_registration_undoes_affine_warps_gain_and_bias(angle, scale, shift, gain, bias):
    source, target = homography(0, 0), homography(*shift, angle, scale)
    first = view(source, 0).astype(np.float32)
    second = (gain * view(target, 1).astype(np.float32) + bias).astype(np.float32)
    pixels = np.array([[150.0, 120.0], [220.0, 180.0], [260.0, 110.0]])
    count = (2 * HALF + 1) ** 2
    rows, pulls, stats = np.empty((3, ROWS, count), np.float32), np.empty((3, 6, 4)), np.empty((3, 3))
    registration.make_templates(first, pixels, HALF, 0.03, 1.5, 0.01, 0, 3, rows, pulls, stats)
    truth = moved(pixels, source, target)
    states = np.concatenate([truth + np.array([1.0, -0.8]), np.tile([1.0, 0.0, 0.0, 1.0], (3, 1))], axis=1)
    qualities, outcomes = np.zeros((3, 4)), np.zeros(3, np.int64)
    registration.register_all(
        second, np.arange(3), rows, pulls, stats, HALF, 4.0, 0, 3, states, qualities, outcomes
    )  # fmt: skip
    assert np.all(outcomes == registration.REGISTERED)
    np.testing.assert_allclose(states[:, :2], truth, atol=0.12)
    np.testing.assert_allclose(qualities[:, 2], gain, rtol=0.1)
    assert np.all(qualities[:, 0] > 0.97)


def test_an_edge_has_no_precise_position():
    edge = np.where(np.arange(WIDTH) < 200, 60, 180).astype(np.float32)
    image = cv2.GaussianBlur(np.tile(edge, (HEIGHT, 1)), (0, 0), 1.0)
    image += np.random.default_rng(0).normal(0, 1, image.shape).astype(np.float32)
    corner = cv2.GaussianBlur(np.where(np.indices((HEIGHT, WIDTH)).min(0) < 150, 60, 180).astype(np.float32), (0, 0), 1)
    stats, pulls = np.empty((1, 3)), np.empty((1, 6, 4))
    rows = np.empty((1, ROWS, (2 * HALF + 1) ** 2), np.float32)
    registration.make_templates(image, np.array([[200.0, 100.0]]), HALF, 0.03, 1.0, 0.01, 0, 1, rows, pulls, stats)
    on_edge = stats[0, 0]
    registration.make_templates(corner, np.array([[150.0, 150.0]]), HALF, 0.03, 1.0, 0.01, 0, 1, rows, pulls, stats)
    assert on_edge > 5 * stats[0, 0]


def test_blank_and_malformed_footage_is_refused():
    with pytest.raises(NotCalibratableError, match="texture"):
        track(np.full((6, HEIGHT, WIDTH), 128, np.uint8))
    with pytest.raises(InputError, match="uint8"):
        track(np.zeros((6, HEIGHT, WIDTH), np.float32))  # type: ignore[arg-type]
