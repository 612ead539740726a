"""Images that were undistorted before we got them: calibrated as the sensor saw them, reported as they are.

Lenses are not quite symmetric, and it is on the sensor that their asymmetry has the shape that lens models know. In
images that another lens has undistorted, about another centre, it has none: models fit it there by moving the principal
point, by many of its error bars. So the tracks go back to the sensor, whose lens is estimated from the given one on.
What comes out is then put into the images: the lens that shows the same rays at the same pixels, and the rotation
between both, which the poses take up.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration, ErrorBudget, PartialEstimate
from rssc.model.camera import Camera
from rssc.model.lens import Lens
from rssc.model.scene import Scene
from rssc.model.trajectory import Trajectory
from rssc.runtime.blas import with_serial_blas
from rssc.runtime.constants import Constants


@dataclass(frozen=True)
class UndistortedConstants(Constants):
    """The lens of undistorted images."""

    model: str = "opencv"
    """It is close to a pinhole, and what is left has no symmetry."""
    grid: int = 25
    """Rows and columns of the pixels that it is fitted to. Chosen by hand: lenses are smooth."""
    step: float = 1e-6
    """Change of a parameter for a derivative, relative or absolute. Chosen by hand: half the digits."""


UNDISTORTED = UndistortedConstants()


def to_sensor(scene: Scene) -> Scene:
    """The scene as the sensor saw it, with the lens that undistorted its images to start from."""
    camera, tracks = scene.camera, scene.tracks
    assert camera.undistorted_from is not None
    pixels = camera.sensor_pixels(tracks.pixels)
    sigmas = tracks.sigmas * _magnification(camera, tracks.pixels)
    raw = replace(camera, lens=camera.undistorted_from, undistorted_from=None)
    return replace(scene, camera=raw, tracks=replace(tracks, pixels=pixels, sigmas=sigmas))


def in_images(found: Calibration, given: Lens) -> Calibration:
    """A calibration of the sensor as that of the images that a given lens undistorted."""
    names = found.camera.lens.parameter_names
    at = [found.parameters.index(name) for name in names if name in found.parameters]
    lens, rotation, response = fit_image_lens(found.camera, given)
    camera = replace(found.camera, lens=lens, undistorted_from=given)
    free = [name in found.parameters for name in names]
    # What else was estimated, the readout, is the same.
    others = [i for i in range(len(found.parameters)) if i not in at]
    matrix = np.zeros((len(lens.parameters) + len(others), len(found.parameters)))
    matrix[: len(lens.parameters), at] = response[:, free]
    matrix[len(lens.parameters) :, others] = np.eye(len(others))
    parameters = (*lens.parameter_names, *(found.parameters[i] for i in others))
    covariance = matrix @ found.covariance @ matrix.T
    shown = replace(
        found,
        camera=camera,
        parameters=parameters,
        covariance=covariance,
        stretches=tuple(replace(one, scene=_scene_in_images(one.scene, camera, rotation)) for one in found.stretches),
    )
    return replace(shown, uncertainty=_budget_in_images(found, shown))


@with_serial_blas
def fit_image_lens(camera: Camera, given: Lens) -> tuple[Lens, FloatArray, FloatArray]:
    """The lens of images that `given` undistorted from those of a camera.

    Returns:
        The lens; (3, 3) rotation of the camera's axes into those of the lens; (k, m) change of its k parameters with
        the m of the camera's lens.
    """
    pinhole, sensor = given.without_distortion(), camera.lens
    u, v = np.meshgrid(*(np.linspace(0, size - 1, UNDISTORTED.grid) for size in (camera.width, camera.height)))
    pixels = np.column_stack([u.ravel(), v.ravel()])
    on_sensor = given.project(pinhole.unproject(pixels))
    seen = np.isfinite(sensor.unproject(on_sensor)).all(axis=1)
    pixels, on_sensor = pixels[seen], on_sensor[seen]
    start = Lens(UNDISTORTED.model, *pinhole.parameters[:4].tolist())
    scale = np.concatenate([np.full(4, sensor.fx), np.ones(len(start.parameters) + 3 - 4)])

    def errors(x: FloatArray, rays: FloatArray) -> FloatArray:
        lens = start.with_parameters(start.parameters + x[:-3] * scale[:-3])
        turned = Rotation.from_rotvec(x[-3:]).apply(rays)
        return np.nan_to_num(lens.project(turned) - pixels, nan=camera.width).ravel()

    rays = sensor.unproject(on_sensor)
    fit = least_squares(errors, np.zeros(len(scale)), args=(rays,), x_scale="jac", xtol=1e-12, ftol=1e-12, gtol=1e-12)
    changes = np.zeros((len(fit.fun), len(sensor.parameters)))
    for i, value in enumerate(sensor.parameters):
        step = UNDISTORTED.step * max(abs(value), 1.0)
        moved = [sensor.with_parameters(sensor.parameters + s * np.eye(len(changes.T))[i]) for s in (step, -step)]
        changes[:, i] = np.subtract(*(errors(fit.x, one.unproject(on_sensor)) for one in moved)) / (2 * step)
    response = -np.linalg.lstsq(np.asarray(fit.jac), changes, rcond=None)[0]
    lens = start.with_parameters(start.parameters + fit.x[:-3] * scale[:-3])
    return lens, Rotation.from_rotvec(fit.x[-3:]).as_matrix(), response[:-3] * scale[:-3, None]


def _scene_in_images(scene: Scene, camera: Camera, rotation: FloatArray) -> Scene:
    given, trajectory = camera.undistorted_from, scene.trajectory
    assert given is not None
    pixels = given.without_distortion().project(given.unproject(scene.tracks.pixels))
    tracks = replace(scene.tracks, pixels=pixels, sigmas=scene.tracks.sigmas / _magnification(camera, pixels))
    if trajectory is not None:
        controls = rotation @ trajectory.control_poses
        trajectory = Trajectory(controls, trajectory.start, trajectory.knot_spacing)
    return replace(
        scene, camera=camera, tracks=tracks, trajectory=trajectory, cam_from_world=rotation @ scene.cam_from_world
    )


def _magnification(camera: Camera, pixels: FloatArray) -> FloatArray:
    """(n,) size of the sensor's image over that of the undistorted one around (n, 2) pixels of the latter."""
    right, down = (camera.sensor_pixels(pixels + step) - camera.sensor_pixels(pixels - step) for step in np.eye(2) / 2)
    return np.sqrt(np.abs(right[:, 0] * down[:, 1] - right[:, 1] * down[:, 0]))


def _budget_in_images(found: Calibration, shown: Calibration) -> ErrorBudget:
    """Parts of the error bars in their proportion, and estimates of windows at their distance from the whole."""
    budget = found.uncertainty
    common = [name for name in found.parameters if name in shown.parameters]
    grown = {name: shown.sigma(name) / max(found.sigma(name), 1e-300) for name in common}
    before, after = found.camera.lens, shown.camera.lens

    def moved(window: PartialEstimate) -> PartialEstimate:
        changes = {
            name: getattr(window, name) + getattr(after, name) - getattr(before, name)
            for name in ("fx", "fy", "cx", "cy")
        }
        return replace(window, **changes)

    return replace(
        budget,
        parts={
            part: {name: sigma * grown[name] for name, sigma in sigmas.items() if name in grown}
            for part, sigmas in budget.parts.items()
        },
        windows=tuple(moved(window) for window in budget.windows),
    )
