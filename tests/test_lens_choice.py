"""Choice of the lens model: nested models, the same observations for all, and what their spread adds."""

from dataclasses import replace

import numpy as np
import pytest

from rssc.errors import InputError, NotCalibratableError
from rssc.inference import lens_choice, shared_errors
from rssc.inference.evidence import Candidate, effective_parameters, probabilities
from rssc.inference.lens_choice import choose_lens, lens_spread
from rssc.inference.lens_conversion import ancestors, convert_lens
from rssc.inference.lens_priors import lens_priors
from rssc.inference.robust import robust_adjust
from rssc.inference.shared_errors import shared_error_covariance
from rssc.model import Camera, Lens, Shutter
from rssc.model.lens import LENS_MODELS
from rssc.simulation import simulate_scene
from rssc.simulation.clip import typical_lens
from rssc.solver.bundle import adjust_with
from rssc.solver.options import AdjustOptions

COMMON = AdjustOptions()
SIZE = (640, 480)


def simulated(lens, *, seed=3, noise=0.1, frames=25, points=220, **options):
    return simulate_scene(
        seed, frame_count=frames, point_count=points, camera=Camera(*SIZE, lens, Shutter(0.5)), pixel_noise=noise,
        start_readout_ratio=0.4, **options,
    )  # fmt: skip


def adjusted(simulation, model):
    """The scene adjusted with a model that is not the one that took it."""
    scene = simulation.scene
    lens = convert_lens(scene.camera.lens, model, *SIZE)
    return robust_adjust(replace(scene, camera=scene.camera.with_lens(lens)))


def costs_of(candidates):
    return {candidate.name: candidate.adjustment.summary.cost for candidate in candidates}


def error_over_image(one, other):
    """Pixels between the projections of two lenses, over the image."""
    u, v = np.meshgrid(np.linspace(0, SIZE[0] - 1, 9), np.linspace(0, SIZE[1] - 1, 9))
    pixels = np.column_stack([u.ravel(), v.ravel()])
    return np.linalg.norm(other.project(one.unproject(pixels)) - pixels, axis=1)


@pytest.mark.parametrize("model", LENS_MODELS)
def test_a_model_that_contains_another_becomes_it_exactly(model):
    """Up to the end of its field: a fit would stop at the fold, tens of pixels from the lens that it is to become."""
    for name in ancestors(model)[:-1]:
        first = (-0.3,) if LENS_MODELS[name].coefficients else ()
        rest = (0.0,) * (len(LENS_MODELS[name].coefficients) - 1)
        lens = Lens(name, 330, 335, 322, 236, first + rest)
        found = convert_lens(lens, model, *SIZE)
        assert found.model == model
        assert found.field_limit == pytest.approx(lens.field_limit)
        rays = lens.unproject([[320, 240], [500, 300], [100, 100]])
        np.testing.assert_array_equal(found.project(rays), lens.project(rays))


@pytest.mark.parametrize("model", [name for name, model in LENS_MODELS.items() if len(model.coefficients) > 2])
def test_strong_lenses_are_converted_between_families(model, rng):
    for _ in range(5):
        focal = rng.uniform(0.5, 0.9) * SIZE[0]
        centre = (319.5 + rng.normal(0, 5), 239.5 + rng.normal(0, 5))
        lens = Lens("radial", focal, 0.995 * focal, *centre, (rng.uniform(-0.3, 0.05), rng.uniform(0.05, 0.1)))
        assert np.nanmedian(error_over_image(lens, convert_lens(lens, model, *SIZE))) < 0.5


def test_a_lens_of_170_degrees_is_converted_up_to_its_corners():
    """Fitted at once, a rational lens ends hundreds of pixels off; from the centre outwards it follows."""
    lens = Lens("fisheye", 256, 255, 321, 239, (0.08, -0.083, -0.12, 0.063))
    errors = error_over_image(lens, convert_lens(lens, "full_opencv", *SIZE))
    assert np.nanmedian(errors) < 0.1
    assert np.nanpercentile(errors, 90) < 0.5


def test_no_conversion_ends_farther_from_the_rays_than_that_of_its_parent():
    """An action camera's: from the few rays at the centre, ten coefficients of a fisheye once went 900,000 px astray,
    and the model seemed not to see the scene."""
    size = (1920, 1080)
    series = (0.2134, -0.1618, 7e-5, 1.4e-4, -0.0069, 0.4935, -0.175, -0.0336)
    lens = Lens("full_opencv", 867.8, 886, 985.8, 527.5, series)
    pixels = np.stack(np.meshgrid(np.linspace(0, size[0] - 1, 15), np.linspace(0, size[1] - 1, 15)), axis=2).reshape(
        -1, 2
    )
    rays = lens.unproject(pixels)
    seen = np.isfinite(rays).all(axis=1)

    def worst(model):
        return float(np.abs(convert_lens(lens, model, *size).project(rays[seen]) - pixels[seen]).max())

    assert worst("fisheye624") < worst("thin_prism_fisheye") < worst("fisheye") < 5


def test_a_rational_lens_is_not_expected_to_have_a_pole_in_the_image():
    """One that fitted all tracks once ended at a corner, where no track went."""

    def surprise(*distortion):
        lens = Lens("full_opencv", 322.1, 327.1, 322.3, 171.3, distortion)
        prior = lens_priors(Camera(640, 360, lens, Shutter(0.5)))[-1]
        known = lens.coefficients(tuple(prior.coefficients))
        return abs(np.dot(known, list(prior.coefficients.values())) - prior.value) / prior.sigma

    assert surprise(-0.2, 0.05, 0, 0, 0, 0, 0, 0) == pytest.approx(0)
    assert surprise(*typical_lens("full_opencv", 640, 360).distortion) < 2
    assert surprise(-0.00796, -0.07603, -0.0012, 0.0004, -0.03772, 0.28564, -0.17025, -0.04891) > 3


@pytest.mark.parametrize("noise", [0.0, 0.1], ids=["perfect", "noisy"])
@pytest.mark.parametrize("model", LENS_MODELS)
def test_no_model_ends_above_the_one_nested_in_it(model, noise):
    """Whatever the lens, and from whichever family the choice begins."""
    simulation = simulated(typical_lens(model, *SIZE), noise=noise, frames=12, points=80)
    for start in ("radial", "fisheye"):
        costs = costs_of(choose_lens(adjusted(simulation, start), "auto", COMMON))
        assert {start, model, "full_opencv", "thin_prism_fisheye"} <= set(costs)
        for name, cost in costs.items():
            for nested in set(ancestors(name)) & set(costs):
                assert cost <= costs[nested] * (1 + 1e-9)


@pytest.fixture(scope="module")
def tangential():
    lens = Lens("opencv", 450, 446, 324, 237, (-0.15, 0.05, 0.004, -0.003))
    simulation = simulated(lens, outlier_fraction=0.01)
    # Besides gross outliers, errors as large as the misfit of a wrong lens.
    tracks, rng = simulation.scene.tracks, np.random.default_rng(1)
    moved = 3.0 * (rng.uniform(size=len(tracks)) < 0.03)[:, None] * rng.choice([-1, 1], (len(tracks), 2))
    return replace(simulation, scene=replace(simulation.scene, tracks=replace(tracks, pixels=tracks.pixels + moved)))


@pytest.fixture(scope="module")
def found(tangential):
    current = adjusted(tangential, "radial")
    return choose_lens(current, "auto", COMMON, tangential.scene.tracks)


def test_the_right_model_wins_from_a_wrong_start(found):
    lens = found[0].adjustment.scene.camera.lens
    assert found[0].name in ("opencv", "full_opencv")
    truth = {"cx": 324, "cy": 237, "p1": 0.004, "p2": -0.003}
    values = dict(zip(lens.parameter_names, lens.parameters, strict=True))
    for name, value in truth.items():
        assert abs(values[name] - value) < 4 * found[0].covariance.sigma(name)
    # The simpler one was adjusted on the same observations and lost.
    radial = next(candidate for candidate in found if candidate.name == "radial")
    assert radial.evidence > 50
    assert len(radial.adjustment.residuals) == len(found[0].adjustment.residuals)


def test_observations_that_a_wrong_lens_calls_outliers_come_back(tangential, found):
    kept, all_of_them = len(adjusted(tangential, "radial").scene.tracks), len(tangential.scene.tracks)
    # All but the gross ones, one in a hundred.
    assert kept < 0.97 * all_of_them < 0.98 * all_of_them < len(found[0].adjustment.scene.tracks) < all_of_them


def test_a_lens_that_ends_beside_a_point_is_left_out(tangential, monkeypatch):
    """It once ended the whole calibration."""

    def unless_full(scene, options):
        if scene.camera.lens.model == "full_opencv":
            raise InputError("point 880 lies beyond the field of its lens.")
        return adjust_with(scene, options)

    current = adjusted(tangential, "radial")
    monkeypatch.setattr(lens_choice, "adjust_with", unless_full)
    assert (
        {"radial", "opencv"}
        <= set(costs_of(choose_lens(current, "auto", COMMON)))
        <= set(LENS_MODELS) - {"full_opencv"}
    )
    with pytest.raises(NotCalibratableError, match="no lens model"):
        choose_lens(current, "full_opencv", COMMON)


def test_a_named_model_is_the_only_candidate(tangential):
    candidates = choose_lens(adjusted(tangential, "radial"), "full_opencv", COMMON)
    assert [candidate.name for candidate in candidates] == ["full_opencv"]


def test_a_model_that_cannot_see_the_clip_says_so():
    lens = Lens("fisheye", 200, 200, 319.5, 239.5)
    simulation = simulated(lens, points=400, world="corridor", track_length=12)
    current = adjusted(simulation, "fisheye")
    with pytest.raises(NotCalibratableError, match="cannot project"):
        choose_lens(current, "pinhole", COMMON)
    names = {candidate.name for candidate in choose_lens(current, "auto", COMMON)}
    assert names == {"fisheye", "thin_prism_fisheye", "fisheye624"}


def test_coefficients_that_only_the_prior_knows_are_not_charged(found):
    candidates = {candidate.name: candidate.adjustment for candidate in found}
    charged = {name: effective_parameters(one) for name, one in candidates.items()}
    assert charged["opencv"] == pytest.approx(9, abs=0.1)
    # Four more coefficients, of which the data know one or two.
    assert 9 < charged["full_opencv"] < 12
    lens = candidates["full_opencv"].scene.camera.lens
    assert np.abs(lens.distortion).max() < 1, "the others stay where the prior holds them"


def test_richer_models_than_needed_hardly_widen_the_bars(found):
    opencv, full = (
        next(candidate.adjustment for candidate in found if candidate.name == name)
        for name in ("opencv", "full_opencv")
    )
    truth = {"fx": 450, "fy": 446, "cx": 324, "cy": 237}
    for name, value in truth.items():
        assert full.covariance.sigma(name) < 1.2 * opencv.covariance.sigma(name)
        assert abs(getattr(full.scene.camera.lens, name) - value) < 4 * full.covariance.sigma(name)


def as_likely(candidates, *names):
    """The named candidates, the first one chosen, all of the same evidence."""
    by_name = {candidate.name: candidate for candidate in candidates}
    return tuple(replace(by_name[name], evidence=0.0) for name in names)


def test_one_likely_model_adds_nothing(found):
    alone = tuple(replace(candidate, evidence=1e3 * i) for i, candidate in enumerate(found))
    spread = lens_spread(alone, alone[0].name)
    assert spread.parameters == alone[0].adjustment.covariance.parameters
    np.testing.assert_array_equal(spread.matrix, 0.0)


def test_models_that_evidence_does_not_separate_are_averaged(found):
    pair = as_likely(found, "opencv", "radial")
    lenses = [candidate.adjustment.scene.camera.lens for candidate in pair]
    spread = lens_spread(pair, "opencv")
    np.testing.assert_allclose(probabilities(pair), 0.5)
    assert spread.sigma("cy") >= 0.99 * np.sqrt(0.5) * abs(lenses[1].cy - lenses[0].cy)
    assert spread.sigma("p1") >= 0.99 * np.sqrt(0.5) * abs(lenses[0].distortion[2])
    assert np.linalg.eigvalsh(spread.matrix).min() > -1e-9


def test_a_simpler_model_inherits_the_uncertainty_of_what_it_takes_to_be_zero(found):
    opencv, radial = as_likely(found, "opencv", "radial")
    # The same estimate: only the covariance of the richer model is larger.
    camera = opencv.adjustment.scene.camera
    camera = camera.with_lens(convert_lens(radial.adjustment.scene.camera.lens, "opencv", *SIZE)).with_readout_ratio(
        radial.adjustment.scene.camera.shutter.readout_ratio
    )
    adjustment = replace(opencv.adjustment, scene=replace(opencv.adjustment.scene, camera=camera))
    opencv = Candidate("opencv", 0.0, adjustment)
    radial = replace(radial, covariance=None)
    spread = lens_spread((radial, opencv), "radial")
    excess = adjustment.covariance.sigma("cx") ** 2 - radial.adjustment.covariance.sigma("cx") ** 2
    assert excess > 0
    assert spread.sigma("cx") ** 2 >= 0.45 * excess
    # Radial coefficients of different models stand for one another.
    assert spread.sigma("k1") == spread.sigma("k2") == 0


def test_lenses_of_two_families_are_compared_as_one_model():
    simulation = simulated(typical_lens("radial", *SIZE))
    candidates = choose_lens(adjusted(simulation, "radial"), "auto", COMMON)
    pair = as_likely(candidates, "radial", "fisheye")
    spread = lens_spread(pair, "radial")
    # k1 of the fisheye is a third away; as a radial lens it is nearly the same.
    distance = pair[1].adjustment.scene.camera.lens.distortion[0] - pair[0].adjustment.scene.camera.lens.distortion[0]
    assert distance > 0.2
    assert spread.sigma("k1") < 0.02
    assert spread.sigma("fx") < 3 * pair[0].adjustment.covariance.sigma("fx")


def fitted(simulation, pattern=None, model=None):
    """A scene adjusted without loss, after a pattern of the sensor was added to what it measured."""
    scene = simulation.scene
    if pattern is not None:
        tracks = scene.tracks
        scene = replace(scene, tracks=replace(tracks, pixels=tracks.pixels + pattern(tracks.pixels)))
    lens = convert_lens(simulation.truth.camera.lens, model or scene.camera.lens.model, *SIZE)
    return adjust_with(replace(scene, camera=scene.camera.with_lens(lens)), AdjustOptions(cost_tolerance=1e-7))


def ratios(adjustment, names=("fx", "fy", "cx", "cy")):
    """Variances with shared errors over those of independent ones."""
    shared = shared_error_covariance(adjustment)
    return np.array([(shared.sigma(name) / adjustment.covariance.sigma(name)) ** 2 for name in names])


def test_cells_and_rings_add_nothing_where_there_is_no_misfit(monkeypatch):
    lens = typical_lens("radial", *SIZE)
    adjustments = [fitted(simulated(lens, seed=seed, frames=20, points=150)) for seed in range(8)]
    found = np.array([ratios(adjustment) for adjustment in adjustments])
    assert found.min() > 0.8
    monkeypatch.setattr(shared_errors, "_significant", lambda scores, groups, known: np.zeros_like(known))
    without = np.array([ratios(adjustment) for adjustment in adjustments])
    assert np.mean(found / without) == pytest.approx(1.0, abs=0.03)


def test_a_pattern_of_the_sensor_that_no_lens_explains_widens_the_bars():
    """A fixed pattern of 0.3 px, as wide as a third of the image: ten times the noise of what is estimated."""
    lens = typical_lens("opencv", *SIZE)

    def wave(pixels):
        x, y = (pixels / SIZE[0]).T
        return 0.3 * np.column_stack([np.sin(18 * x + 5 * y), np.cos(7 * x - 17 * y)])

    errors, sigmas, noises = [], [], []
    for seed in range(6):
        adjustment = fitted(simulated(lens, seed=seed, frames=20, points=150), wave)
        shared, found = shared_error_covariance(adjustment), adjustment.scene.camera.lens
        for name in ("fx", "fy", "cx", "cy"):
            errors.append(getattr(found, name) - getattr(lens, name))
            sigmas.append(shared.sigma(name))
            noises.append(adjustment.covariance.sigma(name))
    z_noise, z = (np.sqrt(np.mean(np.divide(errors, one) ** 2)) for one in (noises, sigmas))
    assert z < 0.6 * z_noise
    assert z < 2.0


def test_a_misfit_of_the_radial_profile_widens_the_focal_length():
    """A rational lens, fitted by a polynomial of two coefficients: rings of residuals."""
    lens = Lens("full_opencv", 350, 348, 321, 238, (0.5, 0.1, 1e-4, -1e-4, 0.005, 0.7, 0.2, 0.02))
    simulation = simulated(lens, noise=0.05, points=400, world="corridor", track_length=12)
    adjustment = fitted(simulation, model="radial")
    assert ratios(adjustment, ("fx", "fy")).min() > 4
