"""Verdicts: what is weak, why, and what to do about it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import rssc
from rssc.inference.departures import Departure
from rssc.inference.infer import Inference
from rssc.inference.motion import Alternation
from rssc.inference.uncertainty import Uncertainty
from rssc.model.camera import Shutter
from rssc.model.covariance import Covariance
from rssc.pipeline.agreement import find_disagreements
from rssc.pipeline.causes import find_wrong_models
from rssc.pipeline.motion_summary import MotionSummary, summarise_motion
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.result import make_result
from rssc.pipeline.several import Combined
from rssc.pipeline.stretch import StretchResult
from rssc.pipeline.verdict import (
    _shutter_notes,
    advice,
    judge,
    treacherous_motion,
    uncertain_parameters,
    weak_direction,
)
from rssc.simulation.scenes import simulate_scene
from tests.builders import make_camera, make_covariance, make_stretch

CAMERA = make_camera()
GOOD = MotionSummary(0.01, 0.005, 8.0, 4.0, 0.3, 0.4, 0.3)


def covariance(**sigmas):
    return make_covariance(CAMERA, 1e-4, **sigmas)


def test_small_error_bars_are_fine():
    assert uncertain_parameters(CAMERA, covariance()) == ([], [])


@pytest.mark.parametrize(
    ("sigmas", "lost", "word"),
    [
        ({"readout_ratio": 0.02}, False, "readout"),
        ({"readout_ratio": 0.5}, True, "readout"),
        ({"readout_ratio": np.inf}, True, "readout"),
        ({"fy": 10.0}, False, "focal"),
        ({"fx": 100.0}, True, "focal"),
        ({"cx": 30.0}, False, "principal point"),
        ({"cx": np.inf}, False, "principal point cannot be estimated"),
    ],
)
def test_wide_error_bars_are_named(sigmas, lost, word):
    found = uncertain_parameters(CAMERA, covariance(**sigmas))
    assert len(found[0 if lost else 1]) == 1 and not found[1 if lost else 0]
    assert word in (found[0] + found[1])[0]


def test_a_readout_that_cannot_be_told_is_no_global_shutter():
    camera = replace(CAMERA, shutter=Shutter(0.005))
    assert _shutter_notes([], camera, covariance(readout_ratio=0.01))
    assert not _shutter_notes([], camera, covariance(readout_ratio=np.inf))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image_motion": 1e-4}, "hardly moved"),
        ({"across_motion": 1e-5}, "tilt up and down"),
        ({"parallax_deg": 0.1}, "hardly changed its place"),
        ({"depth_spread": 1e-3}, "one plane"),
        ({"forward": 0.99}, "forward"),
        ({"steadiness": 0.999}, "constant speed"),
    ],
)
def test_advice_fits_the_motion(changes, words):
    assert any(words in reason for reason in advice([replace(GOOD, **changes)]))
    assert not advice([GOOD])


def test_motion_that_nothing_checks_is_flagged_whatever_the_error_bars():
    assert treacherous_motion([replace(GOOD, parallax_deg=0.01)])
    assert treacherous_motion([replace(GOOD, steadiness=0.999)])
    assert treacherous_motion([replace(GOOD, depth_spread=1e-3)])
    assert not treacherous_motion([replace(GOOD, parallax_deg=0.01), GOOD])


def test_the_weak_direction_is_named():
    known = covariance()
    matrix = known.matrix.copy()
    # Readout and fy go together.
    matrix[1, 1], matrix[4, 4], matrix[1, 4] = 25.0, 0.01**2, 0.99 * 5.0 * 0.01
    matrix[4, 1] = matrix[1, 4]
    assert set(weak_direction(CAMERA, Covariance(known.parameters, matrix)).split(" against ")) == {
        "fy",
        "readout_ratio",
    }


def test_vibration_that_frames_do_not_resolve_is_weak_and_the_result_says_what_motion_was_found():
    scene = simulate_scene(4, frame_count=20, point_count=150, pixel_noise=0.1).scene
    prior = (0.01, 0.05, 3)
    adjustment = rssc.adjust(scene, knot_spacing=0.5, motion_prior=prior)
    # Of a clip that tells more than these twenty frames.
    known = replace(adjustment.covariance, matrix=1e-4 * adjustment.covariance.matrix)
    uncertainty = Uncertainty(known, {"noise": {"readout_ratio": 1.0}})
    verdicts = []
    # Slow motion; fast motion that finer knots follow; one that they do not follow.
    slow = Alternation(-0.5, 0.1)
    for resolved in (slow, Alternation(0.3, 0.1), Alternation(-0.4, 0.1)):
        inference = Inference(
            adjustment, uncertainty, (), 0.0,
            alternation=slow if resolved is slow else Alternation(-0.5, 1.0), resolved=resolved,
        )  # fmt: skip
        stretch = make_stretch(adjustment.scene)
        one = StretchResult(inference, stretch, 1 / 30, np.ones(20, bool), (), {})
        combined = Combined(adjustment.scene.camera, known, 1 / 30, (one,), (stretch,))
        verdicts.append(judge(combined))
    calm, held, shaken = verdicts
    # Where noise hides the readout anyway, it is what alternates.
    noisy = replace(uncertainty, covariance=replace(known, matrix=1e4 * known.matrix))
    one = replace(one, inference=replace(one.inference, uncertainty=noisy))
    assert "vibration" not in judge(replace(combined, results=(one,))).causes
    assert (held.status, held.reasons) == (calm.status, calm.reasons)
    added = [reason for reason in shaken.reasons if reason not in calm.reasons]
    assert shaken.status == "weak"
    assert any("vibrates faster than its frames resolve" in reason for reason in added)
    assert shaken.causes[0] == "vibration" and "vibration" not in held.causes
    assert "vibrates" in shaken.reasons[0] and not any("faster motion" in reason for reason in shaken.reasons)
    result = make_result(combined, shaken, CalibrateOptions(), {})
    motion = result.uncertainty.motion
    assert result.causes == shaken.causes
    assert (motion.knot_spacing, motion.order) == (0.5, 3)
    # Residuals are as large as the tracks' sigmas say.
    assert motion.rotation == pytest.approx(prior[0], rel=0.1)
    assert motion.translation == pytest.approx(prior[1], rel=0.1)


def test_an_adjustment_that_did_not_converge_says_what_to_do():
    scene = simulate_scene(4, frame_count=8, point_count=40, pixel_noise=0.1).scene
    stopped = rssc.adjust(scene, max_iterations=1)
    assert not stopped.summary.converged
    inference = Inference(stopped, Uncertainty(stopped.covariance, {"noise": {"readout_ratio": 1.0}}), (), 0.0)
    stretch = make_stretch(stopped.scene)
    one = StretchResult(inference, stretch, 1 / 30, np.ones(8, bool), (), {})
    verdict = judge(Combined(stopped.scene.camera, stopped.covariance, 1 / 30, (one,), (stretch,)))
    assert verdict.status != "ok"
    assert any("did not converge (1 iterations were not enough)" in reason and "choose other frames" in reason
               for reason in verdict.reasons)  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "amount", "words"),
    [("optical_stabilisation", 2.04, "by about 2.0 px"), ("focus_breathing", 0.0123, "by about 1.23 %")],
)
def test_a_camera_that_is_not_rigid_is_named_first_with_its_amount(cause, amount, words):
    scene = simulate_scene(4, frame_count=20, point_count=150, pixel_noise=0.1).scene
    adjustment = rssc.adjust(scene)
    uncertainty = Uncertainty(adjustment.covariance, {"noise": {"readout_ratio": 1.0}})
    departure = Departure(cause, amount, 1e-6, np.zeros((5, 5)), np.zeros((0, 2)))
    # What a camera is not rigid by looks like vibration, too, and is not called so.
    inference = Inference(
        adjustment, uncertainty, (), 0.0,
        alternation=Alternation(-0.5, 5.0), resolved=Alternation(-0.4, 0.1), departures=(departure,),
    )  # fmt: skip
    one = StretchResult(inference, make_stretch(adjustment.scene), 1 / 30, np.ones(20, bool), (), {})
    found = judge(Combined(adjustment.scene.camera, adjustment.covariance, 1 / 30, (one,), (one.stretch,)))
    assert found.status == "weak" and words in found.reasons[0]
    assert found.causes[0] == cause and "vibration" not in found.causes


@pytest.mark.parametrize(("resolved", "warped"), [(-0.3, True), (0.4, False)])
def test_frames_that_go_to_and_fro_are_warped_where_no_motion_explains_them(resolved, warped):
    adjustment = rssc.adjust(simulate_scene(4, frame_count=20, point_count=150, pixel_noise=0.1).scene)
    uncertainty = Uncertainty(adjustment.covariance, {"noise": {"readout_ratio": 1.0}})
    inference = Inference(
        adjustment, uncertainty, (), 0.0,
        alternation=Alternation(-0.9, 2.0), resolved=Alternation(resolved, 0.5),
    )  # fmt: skip
    found = [one.cause for one in find_wrong_models(inference)]
    assert found[:1] == (["electronic_stabilisation"] if warped else [])


@pytest.mark.parametrize(
    ("bits", "noise", "amount", "causes"),
    [
        (0.05, 0.3, 0.2, ["compression"]),
        (0.05, 0.3, 3.0, ["compression", "electronic_stabilisation"]),
        (0.30, 0.3, 0.2, ["electronic_stabilisation"]),
        (0.05, 0.02, 0.2, ["electronic_stabilisation"]),
        (None, 0.3, 0.2, ["electronic_stabilisation"]),
    ],
)
def test_strong_compression_is_named_before_what_it_may_be_all_of(bits, noise, amount, causes):
    adjustment = rssc.adjust(simulate_scene(4, frame_count=20, point_count=150, pixel_noise=noise).scene)
    uncertainty = Uncertainty(adjustment.covariance, {"noise": {"readout_ratio": 1.0}})
    departure = Departure("electronic_stabilisation", amount, 1e-6, np.zeros((5, 5)), np.zeros((0, 2)))
    inference = Inference(adjustment, uncertainty, (), 0.0, departures=(departure,))
    one = StretchResult(
        inference, make_stretch(adjustment.scene), 1 / 30, np.ones(20, bool), (), {}, bits_per_pixel=bits
    )
    found = judge(Combined(adjustment.scene.camera, adjustment.covariance, 1 / 30, (one,), (one.stretch,)))
    assert found.status == "weak" and list(found.causes[: len(causes)]) == causes
    assert ("electronic_stabilisation" in found.causes) == ("electronic_stabilisation" in causes)


def judged(readout_sigma=1e-3, **found):
    """The verdict on a simulated scene whose camera may not be rigid."""
    adjustment = rssc.adjust(simulate_scene(4, frame_count=20, point_count=150, pixel_noise=0.02).scene)
    names = adjustment.covariance.parameters
    variances = [readout_sigma**2 if name == "readout_ratio" else 1e-4 for name in names]
    covariance = Covariance(names, np.diag(variances))
    uncertainty = Uncertainty(covariance, {"noise": {"readout_ratio": 1.0}})
    one = StretchResult(
        Inference(adjustment, uncertainty, (), 0.0, **found), make_stretch(adjustment.scene), 1 / 30,
        np.ones(20, bool), (), {},
    )  # fmt: skip
    return judge(Combined(adjustment.scene.camera, covariance, 1 / 30, (one,), (one.stretch,)))


def departure(cause, probability, **options):
    return Departure(cause, 0.2, probability, np.zeros((5, 5)), np.zeros((0, 2)), **options)


def test_what_is_certain_only_beside_another_departure_is_named_after_it():
    found = judged(departures=(departure("zoom", 1e-6), departure("electronic_stabilisation", 1e-9)))
    assert found.causes[:2] == ("zoom", "electronic_stabilisation")


def test_a_suspicion_is_named_where_the_bars_are_wide_and_nowhere_else():
    suspected = (departure("electronic_stabilisation", 2e-4, named=False, belief=0.92),)
    assert "electronic_stabilisation" not in judged(suspected=suspected).causes
    wide = judged(0.02, suspected=suspected)
    assert wide.causes[0] == "electronic_stabilisation" and wide.status == "weak"
    assert not any("faster motion" in reason for reason in wide.reasons)


def test_summary_of_a_simulated_walk():
    truth = simulate_scene(4, frame_count=30, point_count=200).truth
    found = summarise_motion(truth)
    assert 0 < found.across_motion <= found.image_motion < 0.2
    assert found.parallax_deg > 1
    assert found.depth_spread > 0.05
    flat = replace(truth, points=truth.points * [1, 1, 0] + [0, 0, 3])
    assert summarise_motion(flat).depth_spread < 1e-9
    # A ground that most points lie on is not the scene, as long as some stand on it.
    ground = flat.points.copy()
    ground[::4, 2] += np.linspace(0.2, 1.0, len(ground[::4]))
    assert summarise_motion(replace(truth, points=ground)).depth_spread > 0.02


@pytest.mark.parametrize(("apart", "said"), [(0.0004, False), (0.03, True)])
def test_windows_that_disagree_by_little_are_no_reason_to_film_again(apart, said):
    def inferred(factor):
        lens = replace(CAMERA.lens, fx=CAMERA.lens.fx * factor)
        scene = SimpleNamespace(camera=replace(CAMERA, lens=lens))
        return SimpleNamespace(adjustment=SimpleNamespace(scene=scene))

    uncertainty = SimpleNamespace(
        consistency=1e-9, disagreement="fx", windows=[inferred(1 - apart / 2), inferred(1 + apart / 2)]
    )
    result = SimpleNamespace(inference=SimpleNamespace(uncertainty=uncertainty, **vars(inferred(1.0))))
    found = find_disagreements(SimpleNamespace(combination=None, results=[result]))
    assert [one.cause for one in found] == ["disagreement"] * said
