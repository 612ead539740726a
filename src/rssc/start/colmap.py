"""COLMAP at arm's length: our tracks and lenses in, poses and lenses out.

The one module that imports pycolmap, and only when it is used, because the import is heavy. COLMAP puts the centre of
the top-left pixel at (0.5, 0.5); half a pixel is added and taken off here and nowhere else.

Every function is deterministic: all random draws of COLMAP start from `SEED`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.model import LENS_MODELS, Lens
from rssc.model.arrays import FloatArray
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.start.keyframes import Keyframes, Pair

SEED = 1
_HALF_PIXEL = 0.5
_CAMERA_ID = 1
_MIN_MATCHES = 15
_RANSAC_TRIALS = (40, 120)
_SOLVER_THREADS = 1
"""Ceres adds up in another order every time when it runs in threads; problems this small gain nothing from them."""


@dataclass(frozen=True)
class ColmapModel:
    """A reconstruction in our conventions."""

    lens: Lens
    poses: dict[int, FloatArray]
    """Frame to its (3, 4) cam_from_world, for the frames that were registered."""
    points: FloatArray
    """(p, 3) positions of all points; NaN where not mapped."""


def quiet_pycolmap() -> Any:
    """The module, silenced: what matters of COLMAP's messages comes back as results."""
    import pycolmap

    # Set every time, because some of its functions set the level back.
    log = pycolmap.logging
    log.minloglevel = log.ERROR.value
    log.stderrthreshold = log.FATAL.value
    log.alsologtostderr = False
    for level in (log.INFO, log.WARNING, log.ERROR):
        log.set_log_destination(level, "")  # pyright: ignore[reportUnknownMemberType]
    return pycolmap


# Our parameters of each COLMAP model, as positions in COLMAP's list: fx, fy, cx, cy, then the distortion.
_MODELS: dict[str, tuple[str, tuple[int, ...]]] = {
    "SIMPLE_PINHOLE": ("pinhole", (0, 0, 1, 2)),
    "PINHOLE": ("pinhole", (0, 1, 2, 3)),
    "SIMPLE_RADIAL": ("radial", (0, 0, 1, 2, 3)),
    "RADIAL": ("radial", (0, 0, 1, 2, 3, 4)),
    "OPENCV": ("opencv", (0, 1, 2, 3, 4, 5, 6, 7)),
    "SIMPLE_RADIAL_FISHEYE": ("fisheye", (0, 0, 1, 2, 3)),
    "RADIAL_FISHEYE": ("fisheye", (0, 0, 1, 2, 3, 4)),
    "OPENCV_FISHEYE": ("fisheye", (0, 1, 2, 3, 4, 5, 6, 7)),
}


def lens_from_colmap(model: str, parameters: ArrayLike) -> Lens:
    """Our lens of a COLMAP camera model and its parameters."""
    if model not in _MODELS:
        raise InputError(
            f"the COLMAP camera model is {model}; expected one of {', '.join(_MODELS)}. "
            "Run COLMAP again with one of these (--ImageReader.camera_model)."
        )
    name, positions = _MODELS[model]
    fx, fy, cx, cy, *distortion = np.asarray(parameters, dtype=float)[list(positions)]
    distortion += [0.0] * (len(LENS_MODELS[name]) - len(distortion))
    return Lens(name, fx, fy, cx - _HALF_PIXEL, cy - _HALF_PIXEL, tuple(distortion))


def _camera(lens: Lens, width: int, height: int) -> Any:
    """A COLMAP camera with one focal length and one distortion coefficient, all that a start can tell."""
    colmap = quiet_pycolmap()
    model = "SIMPLE_RADIAL_FISHEYE" if lens.model == "fisheye" else "SIMPLE_RADIAL"
    first = lens.distortion[0] if lens.distortion else 0.0
    focal = float(np.sqrt(lens.fx * lens.fy))
    camera = colmap.Camera(
        camera_id=_CAMERA_ID,
        model=model,
        width=width,
        height=height,
        params=[focal, lens.cx + _HALF_PIXEL, lens.cy + _HALF_PIXEL, first],
    )
    camera.has_prior_focal_length = True
    return camera


def _ransac_options(max_error: float) -> Any:
    options = quiet_pycolmap().RANSACOptions()
    options.max_error = max_error
    options.random_seed = SEED
    options.min_num_trials, options.max_num_trials = _RANSAC_TRIALS
    return options


def epipolar_cost(pairs: Sequence[Pair], lens: Lens, width: int, height: int, max_error: float) -> float:
    """How badly a lens explains pairs of frames by one rigid motion each: root mean square in pixels.

    Every pair gets its own essential matrix E. The cost of a match with rays a, b is its first-order distance to the
    epipolar constraint in pixels (Sampson), and at most `max_error`:

        (b^T E a)^2 / (|A^T E^T b|^2 + |B^T E a|^2)        A, B: derivatives of the rays in their pixels
    """
    colmap = quiet_pycolmap()
    camera = _camera(lens, width, height)
    options = _ransac_options(max_error)
    costs = np.zeros(len(pairs))

    def solve(_: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            pair = pairs[i]
            costs[i] = max_error**2
            a, d_a = _rays(lens, pair.first_pixels)
            b, d_b = _rays(lens, pair.second_pixels)
            if not (np.isfinite(d_a).all() and np.isfinite(d_b).all()):
                continue
            found = colmap.estimate_essential_matrix(
                pair.first_pixels + _HALF_PIXEL, pair.second_pixels + _HALF_PIXEL, camera, camera, options
            )
            if found is None:
                continue
            e_a, e_b = a @ found["E"].T, b @ found["E"]
            slope = np.einsum("nij,nj->ni", d_a, e_b), np.einsum("nij,nj->ni", d_b, e_a)
            distance = np.sum(b * e_a, axis=1) ** 2 / np.maximum(np.sum(np.square(slope), axis=(0, 2)), 1e-20)
            costs[i] = np.minimum(distance, max_error**2).mean()

    run_chunks(solve, _chunks(len(pairs)))
    return float(np.sqrt(costs.mean()))


def _rays(lens: Lens, pixels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n, 3) unit rays of (n, 2) pixels and their (n, 2, 3) derivatives; NaN where the lens has no inverse."""
    steps = np.array([[0.5, 0.0], [0.0, 0.5]])
    derivatives = [lens.unproject(pixels + step) - lens.unproject(pixels - step) for step in steps]
    return lens.unproject(pixels), np.stack(derivatives, axis=1)


def _chunks(count: int) -> list[tuple[int, int]]:
    return balanced_chunks(np.arange(count + 1), thread_count())


def map_globally(keyframes: Keyframes, lens: Lens) -> ColmapModel | None:
    """Rotation averaging, then all positions and points at once (GLOMAP); None where it fails."""
    colmap = quiet_pycolmap()
    options = colmap.GlobalPipelineOptions()
    options.random_seed = SEED
    options.num_threads = _SOLVER_THREADS
    options.multiple_models = False
    mapper = options.mapper
    mapper.random_seed = SEED
    mapper.num_threads = _SOLVER_THREADS
    mapper.ba_num_iterations = 2
    mapper.ba_skip_fixed_rotation_stage = True
    mapper.skip_retriangulation = True
    mapper.min_tri_angle_deg = 0.1
    mapper.max_normalized_reproj_error = keyframes.max_error / lens.fx
    mapper.max_angular_reproj_error_deg = float(np.degrees(keyframes.max_error / lens.fx))
    mapper.global_positioning.use_gpu = False
    _set_adjustment(mapper.bundle_adjustment, keyframes.max_error, refine_distortion=False)

    def run(database: Any, folder: str) -> list[Any]:
        manager = colmap.ReconstructionManager()
        colmap.GlobalPipeline(options, database, manager).run()
        return [manager.get(i) for i in range(manager.size())]

    return _map(keyframes, lens, run)


def map_incrementally(keyframes: Keyframes, lens: Lens) -> ColmapModel | None:
    """One frame after the other; None where it fails."""
    colmap = quiet_pycolmap()
    options = colmap.IncrementalPipelineOptions()
    options.random_seed = SEED
    options.num_threads = _SOLVER_THREADS
    options.extract_colors = False
    options.multiple_models = False
    options.min_model_size = 3
    options.ba_refine_extra_params = False
    options.ba_global_max_num_iterations = 30
    options.ba_global_max_refinements = 2
    options.ba_global_frames_ratio = options.ba_global_points_ratio = 1.3
    options.mapper.init_min_tri_angle = 3.0
    options.mapper.init_max_error = keyframes.max_error
    options.mapper.abs_pose_max_error = 2 * keyframes.max_error
    options.mapper.abs_pose_refine_extra_params = False
    options.mapper.filter_max_reproj_error = keyframes.max_error
    options.mapper.filter_min_tri_angle = 0.3
    options.triangulation.complete_max_reproj_error = keyframes.max_error
    options.triangulation.merge_max_reproj_error = keyframes.max_error
    options.triangulation.min_angle = 0.3

    def run(database: Any, folder: str) -> list[Any]:
        database.close()
        return list(colmap.incremental_mapping(Path(folder) / "database.db", folder, folder, options).values())

    return _map(keyframes, lens, run)


def _map(keyframes: Keyframes, lens: Lens, run: Any) -> ColmapModel | None:
    with TemporaryDirectory(prefix="rssc-") as folder:
        database = quiet_pycolmap().Database.open(str(Path(folder) / "database.db"))
        try:
            _fill(database, keyframes, lens)
            models = run(database, folder)
        finally:
            database.close()
    if not models:
        return None
    return _model(max(models, key=lambda m: (m.num_reg_images(), m.num_points3D())), keyframes)


def _fill(database: Any, keyframes: Keyframes, lens: Lens) -> None:
    """Writes camera, frames, keypoints and the two-view geometry of every pair."""
    colmap = quiet_pycolmap()
    camera = _camera(lens, keyframes.width, keyframes.height)
    geometries = _two_view_geometries(keyframes, camera)
    with colmap.DatabaseTransaction(database):
        database.write_camera(camera, use_camera_id=True)
        rig = colmap.Rig(rig_id=_CAMERA_ID)
        rig.add_ref_sensor(camera.sensor_id)
        database.write_rig(rig, use_rig_id=True)
        for frame in keyframes.frames:
            image = colmap.Image(name=_name(frame), camera_id=_CAMERA_ID, image_id=int(frame) + 1)
            database.write_image(image, use_image_id=True)
            entry = colmap.Frame(frame_id=int(frame) + 1, rig_id=_CAMERA_ID)
            entry.add_data_id(image.data_id)
            database.write_frame(entry, use_frame_id=True)
            pixels = keyframes.observations[int(frame)][1]
            database.write_keypoints(int(frame) + 1, (pixels + _HALF_PIXEL).astype(np.float32))
        for pair, geometry in zip(keyframes.pairs, geometries, strict=True):
            if geometry is not None:
                database.write_two_view_geometry(pair.first + 1, pair.second + 1, geometry)


def _name(frame: int) -> str:
    return f"{frame:06d}"


def _two_view_geometries(keyframes: Keyframes, camera: Any) -> list[Any]:
    colmap = quiet_pycolmap()
    options = _ransac_options(keyframes.max_error)
    geometries: list[Any] = [None] * len(keyframes.pairs)

    def solve(_: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            pair = keyframes.pairs[i]
            found = colmap.estimate_essential_matrix(
                pair.first_pixels + _HALF_PIXEL, pair.second_pixels + _HALF_PIXEL, camera, camera, options
            )
            if found is None or found["num_inliers"] < _MIN_MATCHES:
                continue
            inliers = pair.points[np.asarray(found["inlier_mask"], dtype=bool).ravel()]
            columns = [np.searchsorted(keyframes.observations[f][0], inliers) for f in (pair.first, pair.second)]
            geometry = colmap.TwoViewGeometry()
            geometry.config = colmap.TwoViewGeometryConfiguration.CALIBRATED
            geometry.E = found["E"]
            geometry.cam2_from_cam1 = found["cam2_from_cam1"]
            geometry.inlier_matches = np.stack(columns, axis=1).astype(np.uint32)
            geometries[i] = geometry

    run_chunks(solve, _chunks(len(keyframes.pairs)))
    return geometries


def _set_adjustment(options: Any, max_error: float, *, refine_distortion: bool) -> None:
    colmap = quiet_pycolmap()
    options.refine_extra_params = refine_distortion
    options.print_summary = False
    options.ceres.use_gpu = False
    options.ceres.loss_function_type = colmap.LossFunctionType.CAUCHY
    options.ceres.loss_function_scale = max_error / 3
    options.ceres.solver_options.max_num_iterations = 40
    options.ceres.solver_options.function_tolerance = 1e-4
    options.ceres.solver_options.num_threads = _SOLVER_THREADS


def adjust_bundle(keyframes: Keyframes, model: ColmapModel, lens: Lens, *, refine_distortion: bool) -> ColmapModel:
    """Poses, points, focal length and, where wanted, one distortion coefficient, from the model's poses and points.

    All observations of the points take part again, whatever the mapping had left out.
    """
    colmap = quiet_pycolmap()
    reconstruction = colmap.Reconstruction()
    reconstruction.add_camera_with_trivial_rig(_camera(lens, keyframes.width, keyframes.height))
    seen: dict[int, list[tuple[int, int]]] = {}
    for frame in sorted(model.poses):
        points, pixels = keyframes.observations[frame]
        image = colmap.Image(
            name=_name(frame), keypoints=pixels + _HALF_PIXEL, camera_id=_CAMERA_ID, image_id=frame + 1
        )
        reconstruction.add_image_with_trivial_frame(image, colmap.Rigid3d(model.poses[frame]))
        for column in np.flatnonzero(np.isfinite(model.points[points, 0])):
            seen.setdefault(int(points[column]), []).append((frame + 1, int(column)))
    for point, elements in seen.items():
        if len(elements) > 1:
            track = colmap.Track()
            for image_id, column in elements:
                track.add_element(image_id, column)
            reconstruction.add_point3D(model.points[point], track)
    options = colmap.BundleAdjustmentOptions()
    _set_adjustment(options, keyframes.max_error, refine_distortion=refine_distortion)
    config = colmap.BundleAdjustmentConfig()
    for image_id in reconstruction.images:
        config.add_image(image_id)
    config.fix_gauge(colmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    colmap.create_default_bundle_adjuster(options, config, reconstruction).solve()
    return _model(reconstruction, keyframes)


def _model(reconstruction: Any, keyframes: Keyframes) -> ColmapModel:
    camera = next(iter(reconstruction.cameras.values()))
    lens = lens_from_colmap(camera.model_name, camera.params)
    poses = {
        image.image_id - 1: np.array(image.cam_from_world().matrix())
        for image in reconstruction.images.values()
        if image.has_pose
    }
    points = np.full((keyframes.point_count, 3), np.nan)
    for entry in reconstruction.points3D.values():
        element = entry.track.elements[0]
        points[keyframes.observations[element.image_id - 1][0][element.point2D_idx]] = entry.xyz
    return ColmapModel(lens, poses, points)


def absolute_pose(
    points: FloatArray, pixels: FloatArray, lens: Lens, width: int, height: int, max_error: float
) -> tuple[FloatArray, int] | None:
    """(3, 4) cam_from_world of one frame from known (n, 3) points at (n, 2) pixels, and the number that agree."""
    colmap = quiet_pycolmap()
    if len(points) < _MIN_MATCHES:
        return None
    options = colmap.AbsolutePoseEstimationOptions()
    options.ransac = _ransac_options(max_error)
    refinement = colmap.AbsolutePoseRefinementOptions()
    refinement.loss_function_scale = max_error / 3
    found = colmap.estimate_and_refine_absolute_pose(
        pixels + _HALF_PIXEL, points, _camera(lens, width, height), options, refinement
    )
    if found is None or found["num_inliers"] < _MIN_MATCHES:
        return None
    return np.array(found["cam_from_world"].matrix()), int(found["num_inliers"])


def read_model(path: Path) -> tuple[Lens, dict[str, FloatArray], tuple[str, ...]]:
    """Lens, image name to (3, 4) cam_from_world, and notes, of a COLMAP model in a folder, text or binary."""
    colmap = quiet_pycolmap()
    files = path.iterdir() if path.is_dir() else ()
    stems = {file.stem for file in files if file.suffix in (".bin", ".txt")}
    if not {"cameras", "images"} <= stems:
        raise InputError(
            f"{path} holds no COLMAP model; expected a folder with cameras, images and points3D as .bin or .txt."
        )
    try:
        reconstruction = colmap.Reconstruction(str(path))
    except (ValueError, RuntimeError, IndexError) as error:
        raise InputError(f"the COLMAP model in {path} cannot be read: {str(error).splitlines()[0]}") from error
    images = [image for image in reconstruction.images.values() if image.has_pose]
    cameras = [reconstruction.cameras[i] for i in sorted({image.camera_id for image in images})]
    kinds = {(camera.model_name, camera.width, camera.height) for camera in cameras}
    if len(kinds) != 1:
        raise InputError(
            f"the COLMAP model in {path} has {len(kinds)} kinds of cameras in use; expected the one that took the clip."
        )
    # COLMAP gives every image a camera of its own unless told otherwise; the median is a fair account of them.
    focals = [camera.mean_focal_length() for camera in cameras]
    notes = ()
    if max(focals) > 1.01 * min(focals):
        notes = (
            f"The COLMAP model has {len(cameras)} cameras with focal lengths from {min(focals):.0f} to "
            f"{max(focals):.0f} px for one clip; run COLMAP with one shared camera for a better start.",
        )
    lens = lens_from_colmap(cameras[0].model_name, np.median([camera.params for camera in cameras], axis=0))
    poses = {image.name: np.array(image.cam_from_world().matrix()) for image in images}
    return lens, poses, notes
