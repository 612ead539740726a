"""report.html: complete, self-contained, right in its numbers, and there for weak calibrations too."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

import rssc
from rssc.errors import InputError
from rssc.inference.motion import motion_smoothness
from rssc.io.camera_file import camera_document
from rssc.io.reference_file import read_reference
from rssc.model import Camera, Lens, Shutter
from rssc.model.calibration import ErrorBudget, MotionSmoothness, PartialEstimate, Statistics, TriedLens
from rssc.model.projection import image_grid, projection_uncertainty
from rssc.outputs.report.report import render_report, write_report
from rssc.outputs.report.residuals import residuals_of
from rssc.outputs.report.summary import PART_WORDS, field_of_view, number, quantities
from rssc.simulation.scenes import simulate_scene
from rssc.solver.bundle import adjust_with
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import with_trajectory
from tests.builders import make_calibration, make_camera, make_stretch

MAX_BYTES = 8_000_000
CAMERA = make_camera("radial", 320, 240)
UNCERTAINTY = ErrorBudget(
    parts={"noise": {"fx": 0.1, "readout_ratio": 0.001}, "shared": {"fx": 0.3, "readout_ratio": 0.002}},
    windows=(
        PartialEstimate("clip.mp4", (0, 12), 0.497, 0.004, 250.0, 251.0, 160.0, 118.0),
        PartialEstimate("clip.mp4", (8, 20), 0.502, 0.003, 250.0, 251.0, 160.0, 118.0),
    ),
    lenses=(TriedLens("radial", 0.0, 0.5),),
    motion=MotionSmoothness(0.5, 3, 0.002, 0.00123),
)


@pytest.fixture(scope="module")
def adjusted():
    simulated = simulate_scene(3, frame_count=20, point_count=150, camera=CAMERA, readout_ratio=0.5, pixel_noise=0.2)
    return rssc.adjust(simulated.scene, method="te", knot_spacing=1.0)


@pytest.fixture(scope="module")
def calibration(adjusted):
    return calibration_of(adjusted)


def calibration_of(adjusted, **changes):
    tracks = adjusted.scene.tracks
    fields = {
        "camera": adjusted.scene.camera,
        "parameters": adjusted.covariance.parameters,
        "covariance": adjusted.covariance.matrix,
        "statistics": Statistics(
            frames=tracks.frame_count, points=tracks.point_count, observations=len(tracks), rms_px=0.2,
            iterations=3, cost_by_iteration=(3.0, 2.0, 1.5, 1.4), seconds={"tracking": 1.0, "solving": 2.5},
        ),
        "stretches": (make_stretch(adjusted.scene),),
        "uncertainty": UNCERTAINTY,
    }  # fmt: skip
    return make_calibration(**{**fields, **changes})


def grey_frames(source, numbers):
    for n in numbers:
        image = np.add.outer(np.arange(240), np.arange(320)) + n
        yield int(n), np.repeat(image[..., None], 3, axis=2).astype(np.uint8)


def plots_in(page):
    return json.loads(re.search(r'<script type="application/json" id="plots">(.*?)</script>', page, re.S)[1])


def shown_text(page):
    """The page without its scripts and styles."""
    return re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)


def test_has_every_section_and_nothing_from_outside(calibration, tmp_path):
    write_report(calibration, tmp_path / "report.html", images=grey_frames)
    page = (tmp_path / "report.html").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert len(page.encode()) < MAX_BYTES
    text = shown_text(page)
    plots = plots_in(page)
    assert set(plots) == {
        "residual-map", "residual-rows", "residual-histogram", "windows", "projection", "correlation",
        "space", "velocity", "convergence",
    }  # fmt: skip
    for name in plots:
        assert re.search(rf'id="{name}" role="img" aria-label="[^"]+"', text), name
    assert text.count('type="range"') == 1
    assert "Where the time went" in text
    assert "rssc rectify clip.mp4 calibration.json -o rectified.mp4" in text
    assert "Lens models that were tried" in text
    assert "shared errors" in text
    assert not re.findall(r'(?:src|href)="(?!data:)[^"]*"', text)
    assert not re.findall(r"<img(?![^>]*\balt=\"[^\"]+\")", text)
    assert "default-src 'none'" in text
    assert "nan" not in text.lower().split()


def test_compares_with_a_known_camera_and_with_another_calibration(calibration, tmp_path):
    truth = CAMERA.with_lens(Lens("fisheye", *CAMERA.lens.parameters[:4]))
    (tmp_path / "<b>truth.json").write_text(json.dumps(camera_document(truth, 1 / 30)))
    reference = read_reference(tmp_path / "<b>truth.json", calibration)
    page = render_report(calibration, grey_frames, reference)
    assert {"projection", "difference"} <= set(plots_in(page))
    text = shown_text(page)
    assert "How does it compare with &lt;b&gt;truth.json?" in text and "<b>truth" not in text
    assert "lower right" in text and "only projection and readout are compared" in text
    assert "same camera" not in text
    calibration.save(tmp_path / "calibration.json")
    page = render_report(calibration, grey_frames, read_reference(tmp_path / "calibration.json", calibration))
    assert re.search(r"same camera is\s+1\b", shown_text(page))


def test_exposure_is_in_the_table(calibration):
    assert {q.label: q for q in quantities(calibration)}["Exposure time"].value == "unknown"
    exposed = replace(calibration, camera=calibration.camera.with_exposure_ratio(0.363), exposure_sigma=0.0184)
    row = {q.label: q for q in quantities(exposed)}["Exposure time"]
    assert (row.value, row.interval, row.unit) == ("12.1", "10.9 to 13.3", "ms")
    sharp = replace(exposed, camera=calibration.camera.with_exposure_ratio(0.0))
    assert len({q.label: q for q in quantities(sharp)}["Exposure time"].value) <= 4
    barely = replace(exposed, exposure_sigma=0.5)
    assert {q.label: q for q in quantities(barely)}["Exposure time"].interval.startswith("0")


def test_the_motion_is_told_in_real_units(adjusted):
    """Tracks that claim to be ten times as precise have residuals of ten times their sigmas; the motion is the same."""
    scene, found = adjusted.scene, []
    for sigma in (0.2, 0.02):
        tracks = replace(scene.tracks, sigmas=np.full(len(scene.tracks), sigma))
        prior = (0.004 * sigma / 0.2, 0.03 * sigma / 0.2, 3)
        options = AdjustOptions(knot_spacing=0.5, motion_prior=prior, covariance=False)
        found.append(motion_smoothness(adjust_with(replace(scene, tracks=tracks), options)))
    assert (found[0].knot_spacing, found[0].order) == (0.5, 3)
    assert found[0].rotation == pytest.approx(0.004, rel=0.1)
    assert found[0].translation == pytest.approx(0.03, rel=0.1)
    assert found[1].rotation == pytest.approx(found[0].rotation, rel=0.01)
    assert motion_smoothness(adjusted) is None


def test_the_motion_that_was_found_is_said(calibration):
    said = "from knot to knot, every 0.5 frames, its jerk is 0.11° and 0.0012 units of the scene (one sigma)."
    assert said in " ".join(shown_text(render_report(calibration)).split())
    turning = replace(UNCERTAINTY, motion=MotionSmoothness(0.5, 2, 0.002, 0.0))
    page = shown_text(render_report(replace(calibration, uncertainty=turning)))
    assert "its acceleration is 0.11° (one sigma)." in " ".join(page.split())
    # Methods of the paper have a knot spacing, and no more.
    page = shown_text(render_report(replace(calibration, uncertainty=replace(UNCERTAINTY, motion=None))))
    assert "1 frames between the knots of the trajectory; rms residual" in " ".join(page.split())
    assert "one sigma" not in page


@pytest.mark.parametrize(
    ("parts", "heading", "caption"),
    [
        (
            ("noise", "shared", "lens", "windows", "rest"),
            "lens model",
            "within a place, a moment or a part of the sensor",
        ),
        (("own", "stretches", "common"), "between stretches", "which does not average out"),
    ],
)
def test_parts_of_one_stretch_and_of_several_are_explained(calibration, parts, heading, caption):
    budget = replace(UNCERTAINTY, parts={part: {"fx": 0.1} for part in parts})
    page = " ".join(shown_text(render_report(replace(calibration, uncertainty=budget))).split())
    assert f'<th scope="col">{heading}</th>' in page and caption in page
    # All have words of their own.
    assert set(parts) <= set(PART_WORDS)


def test_source_names_are_text_not_markup(calibration):
    stretch = replace(calibration.stretches[0], source="<script>alert(1)</script>.mp4")
    page = render_report(replace(calibration, stretches=(stretch,)), grey_frames)
    assert "<script>alert" not in page


def test_missing_footage_is_said(calibration):
    page = shown_text(render_report(calibration))
    assert "clip.mp4 does not exist" in page
    assert 'type="range"' not in page
    assert "residual-map" in page


def test_weak_calibrations_have_a_report_too(calibration, adjusted):
    unknown = np.diag(np.full(len(calibration.parameters), 1e18))
    lost = calibration_of(adjusted, covariance=unknown, status="degenerate", reasons=("the camera <stood> still",))
    page = render_report(lost, grey_frames)
    assert "Do not use these numbers" in page
    assert "the camera &lt;stood&gt; still" in page
    assert page.count("cannot be estimated") == 3 + len(CAMERA.lens.parameter_names)
    assert "projection" not in plots_in(page)
    bare = calibration_of(adjusted, stretches=(), parameters=(), covariance=np.zeros((0, 0)), uncertainty=ErrorBudget())
    assert set(plots_in(render_report(bare, grey_frames))) == {"convergence"}


def test_methods_without_a_trajectory_have_a_report_too(adjusted):
    scene = replace(adjusted.scene, trajectory=None)
    stretch = replace(calibration_of(adjusted).stretches[0], scene=scene)
    page = render_report(calibration_of(adjusted, method="ceq", stretches=(stretch,)), grey_frames)
    assert {"residual-map", "space", "velocity"} <= set(plots_in(page))


def test_residuals_are_those_of_the_solve(adjusted):
    found = residuals_of([adjusted.scene])
    np.testing.assert_allclose(found.errors, adjusted.residuals, atol=1e-9)
    assert found.sigma == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize("shift", [-0.03, 0.02])
def test_a_wrong_readout_is_a_slope(adjusted, shift):
    assert residuals_of([adjusted.scene]).readout_slope() == pytest.approx(0, abs=2e-3)
    scene = replace(adjusted.scene, camera=adjusted.scene.camera.with_readout_ratio(0.5 + shift))
    right = residuals_of([adjusted.scene]).readout_slope() + adjusted.scene.camera.shutter.readout_ratio - 0.5
    assert residuals_of([scene]).readout_slope() == pytest.approx(right - shift, abs=0.05 * abs(shift))


def test_a_path_is_put_through_free_poses(adjusted):
    scene = with_trajectory(replace(adjusted.scene, trajectory=None), 1.0)
    at_frames = scene.trajectory.cam_from_world(scene.frame_times)
    np.testing.assert_allclose(at_frames, adjusted.scene.cam_from_world, atol=1e-6)


@pytest.mark.parametrize("model", ["opencv", "fisheye"])
def test_projection_uncertainty_matches_refitted_samples(adjusted, rng, model):
    lens = Lens(model, 250.0, 252.0, 161.0, 117.0, (-0.02, 0.01, 0.001, -0.001))
    root = np.diag([0.5, 0.5, 1.0, 1.0, 2e-3, 2e-3, 1e-3, 1e-3]) @ rng.normal(size=(8, 8)) / 3
    calibration = calibration_of(
        adjusted, camera=replace(CAMERA, lens=lens), parameters=lens.parameter_names, covariance=root @ root.T
    )
    columns, rows = image_grid(CAMERA)
    pixels = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
    rays = lens.unproject(pixels)
    squares = np.zeros(len(pixels))
    count = 400
    for _ in range(count):
        sample = lens.with_parameters(lens.parameters + root @ rng.normal(size=8))

        def moved(turn, sample=sample):
            return (sample.project(Rotation.from_rotvec(turn).apply(rays)) - pixels).ravel()

        squares += (moved(least_squares(moved, np.zeros(3)).x).reshape(-1, 2) ** 2).sum(axis=1) / count
    predicted = projection_uncertainty(calibration.camera, calibration.estimated).sigmas
    np.testing.assert_allclose(predicted.ravel(), np.sqrt(squares), rtol=0.2, atol=0.01)
    assert np.median(predicted.ravel() / np.sqrt(squares)) == pytest.approx(1, abs=0.05)


def test_numbers_are_rounded_to_their_uncertainty():
    assert number(512.0412, 0.034) == "512.041"
    assert number(-0.1199, 0.0021) == "\N{MINUS SIGN}0.1199"
    assert number(1234.6, 250.0) == "1235"


def test_intervals(calibration):
    rows = {q.label: q for q in quantities(calibration)}
    low, high = (float(text) for text in rows["Readout ratio"].interval.split(" to "))
    assert (high - low) / 2 == pytest.approx(1.96 * calibration.sigma("readout_ratio"), rel=0.05)
    # Rounded to a tenth of the interval.
    assert float(rows["Readout time"].value) == pytest.approx(1e3 * calibration.readout_time_s, abs=0.05)
    assert float(rows["Line delay"].value) == pytest.approx(1e6 * calibration.readout_time_s / 240, abs=0.5)


def test_field_of_view_of_a_pinhole():
    view = field_of_view(Camera(200, 100, Lens("pinhole", 100.0, 100.0, 99.5, 49.5), Shutter(0.0)))
    assert view == pytest.approx((90.0, 2 * np.degrees(np.arctan(0.5))))


def test_command_writes_beside_the_calibration(calibration, tmp_path):
    from rssc.cli.options import Printing
    from rssc.cli.report import Report
    from rssc.cli.terminal import Terminal

    calibration.save(tmp_path / "calibration.json")
    quiet = Terminal(Printing(quiet=True))
    assert Report(tmp_path / "calibration.json").run(quiet) == 0
    assert (tmp_path / "report.html").stat().st_size < MAX_BYTES
    with pytest.raises(InputError, match="cannot read"):
        Report(tmp_path / "none.json").run(quiet)
