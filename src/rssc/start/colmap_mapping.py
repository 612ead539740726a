"""COLMAP's mappers, bundle adjustment and absolute pose, on keyframes of ours.

Every function is deterministic: all random draws of COLMAP start from `SEED`, and its solvers run in one thread.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from rssc.model import Lens
from rssc.model.arrays import FloatArray
from rssc.runtime.constants import Constants
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.start.colmap import (
    CAMERA_ID,
    HALF_PIXEL,
    SEED,
    ColmapModel,
    PycolmapObject,
    camera_of,
    lens_from_colmap,
    quiet_pycolmap,
    ransac_options,
)
from rssc.start.keyframes import Keyframes

_IN_MEMORY = ":memory:"
"""SQLite's name of a database without a file: a full disk would end the process, and a killed one leave the file."""
_SOLVER_THREADS = 1
"""With several threads Ceres sums in a different order in every run; problems this small gain nothing from them."""


@dataclass(frozen=True)
class ColmapMappingConstants(Constants):
    """Tuned numbers of COLMAP's mappers, chosen by hand: the start has to be robust and quick, not accurate."""

    min_matches: int = 15
    """Fewest inliers that make a pair or a pose trustworthy; COLMAP's default for pairs."""
    loss_divisor: float = 3.0
    """The scale of the Cauchy loss is the largest error of an inlier divided by this."""
    adjustment_iterations: int = 40
    """Iterations of a bundle adjustment at most."""
    adjustment_tolerance: float = 1e-4
    """Relative change of the cost at which a bundle adjustment stops."""
    global_adjustments: int = 2
    """Bundle adjustments of the global mapper; more cost time and change little."""
    global_min_angle_deg: float = 0.1
    """Least angle between the rays of a point in the global mapper: small, because video has little parallax."""
    incremental_iterations: int = 30
    """Iterations of a global adjustment of the incremental mapper."""
    incremental_refinements: int = 2
    """Global adjustments in a row after the model has grown."""
    incremental_growth: float = 1.3
    """Growth of the model in frames or points that asks for a global adjustment; COLMAP's default is 1.1."""
    incremental_first_angle_deg: float = 3.0
    """Least parallax of the first pair of the incremental mapper; COLMAP's default of 16 degrees is too much for
    video."""
    incremental_min_angle_deg: float = 0.3
    """Least angle between the rays of a point in the incremental mapper, for the same reason."""
    incremental_pose_error: float = 2.0
    """Largest error of an inlier when a frame is placed, over that of the reconstruction: the rolling shutter displaces
    more in a single frame."""


COLMAP_MAPPING = ColmapMappingConstants()


def map_globally(keyframes: Keyframes, lens: Lens, *, hold_lens: bool = False) -> ColmapModel | None:
    """Rotation averaging, then all positions and points at once (GLOMAP); None where it fails."""
    colmap = quiet_pycolmap()
    options = colmap.GlobalPipelineOptions()
    options.random_seed = SEED
    options.num_threads = _SOLVER_THREADS
    options.multiple_models = False
    mapper = options.mapper
    mapper.random_seed = SEED
    mapper.num_threads = _SOLVER_THREADS
    mapper.ba_num_iterations = COLMAP_MAPPING.global_adjustments
    mapper.ba_skip_fixed_rotation_stage = True
    mapper.skip_retriangulation = True
    mapper.min_tri_angle_deg = COLMAP_MAPPING.global_min_angle_deg
    mapper.max_normalized_reproj_error = keyframes.max_error / lens.fx
    mapper.max_angular_reproj_error_deg = float(np.degrees(keyframes.max_error / lens.fx))
    mapper.global_positioning.use_gpu = False
    _set_adjustment(mapper.bundle_adjustment, keyframes.max_error, refine_distortion=False)
    mapper.bundle_adjustment.refine_focal_length = not hold_lens

    return _map(keyframes, lens, partial(colmap.GlobalPipeline, options))


def map_incrementally(keyframes: Keyframes, lens: Lens, *, hold_lens: bool = False) -> ColmapModel | None:
    """One frame after the other; None where it fails."""
    colmap = quiet_pycolmap()
    options = colmap.IncrementalPipelineOptions()
    options.random_seed = SEED
    options.num_threads = _SOLVER_THREADS
    options.extract_colors = False
    options.multiple_models = False
    options.min_model_size = 3
    options.ba_refine_extra_params = False
    options.ba_refine_focal_length = not hold_lens
    options.ba_global_max_num_iterations = COLMAP_MAPPING.incremental_iterations
    options.ba_global_max_refinements = COLMAP_MAPPING.incremental_refinements
    options.ba_global_frames_ratio = options.ba_global_points_ratio = COLMAP_MAPPING.incremental_growth
    options.mapper.init_min_tri_angle = COLMAP_MAPPING.incremental_first_angle_deg
    options.mapper.init_max_error = keyframes.max_error
    options.mapper.abs_pose_max_error = COLMAP_MAPPING.incremental_pose_error * keyframes.max_error
    options.mapper.abs_pose_refine_extra_params = False
    options.mapper.filter_max_reproj_error = keyframes.max_error
    options.mapper.filter_min_tri_angle = COLMAP_MAPPING.incremental_min_angle_deg
    options.triangulation.complete_max_reproj_error = keyframes.max_error
    options.triangulation.merge_max_reproj_error = keyframes.max_error
    options.triangulation.min_angle = COLMAP_MAPPING.incremental_min_angle_deg

    return _map(keyframes, lens, partial(colmap.IncrementalPipeline, options))


def _map(
    keyframes: Keyframes, lens: Lens, pipeline: Callable[[PycolmapObject, PycolmapObject], PycolmapObject]
) -> ColmapModel | None:
    """The largest model that a pipeline of a database and a manager of models makes."""
    colmap = quiet_pycolmap()
    database, manager = colmap.Database.open(_IN_MEMORY), colmap.ReconstructionManager()
    try:
        _fill(database, keyframes, lens)
        pipeline(database, manager).run()
    finally:
        database.close()
    models = [manager.get(i) for i in range(manager.size())]
    if not models:
        return None
    return _model(max(models, key=lambda m: (m.num_reg_images(), m.num_points3D())), keyframes)


def _fill(database: PycolmapObject, keyframes: Keyframes, lens: Lens) -> None:
    """Writes camera, frames, keypoints and the two-view geometry of every pair."""
    colmap = quiet_pycolmap()
    camera = camera_of(lens, keyframes.width, keyframes.height)
    geometries = _two_view_geometries(keyframes, camera)
    with colmap.DatabaseTransaction(database):
        database.write_camera(camera, use_camera_id=True)
        rig = colmap.Rig(rig_id=CAMERA_ID)
        rig.add_ref_sensor(camera.sensor_id)
        database.write_rig(rig, use_rig_id=True)
        for frame in keyframes.frames:
            image = colmap.Image(name=_name(frame), camera_id=CAMERA_ID, image_id=int(frame) + 1)
            database.write_image(image, use_image_id=True)
            entry = colmap.Frame(frame_id=int(frame) + 1, rig_id=CAMERA_ID)
            entry.add_data_id(image.data_id)
            database.write_frame(entry, use_frame_id=True)
            pixels = keyframes.observations[int(frame)][1]
            database.write_keypoints(int(frame) + 1, (pixels + HALF_PIXEL).astype(np.float32))
        for pair, geometry in zip(keyframes.pairs, geometries, strict=True):
            if geometry is not None:
                database.write_two_view_geometry(pair.first + 1, pair.second + 1, geometry)


def _name(frame: int) -> str:
    return f"{frame:06d}"


def _two_view_geometries(keyframes: Keyframes, camera: PycolmapObject) -> list[PycolmapObject]:
    colmap = quiet_pycolmap()
    options = ransac_options(keyframes.max_error)
    geometries: list[PycolmapObject] = [None] * len(keyframes.pairs)

    def solve(_: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            pair = keyframes.pairs[i]
            found = colmap.estimate_essential_matrix(
                pair.first_pixels + HALF_PIXEL, pair.second_pixels + HALF_PIXEL, camera, camera, options
            )
            if found is None or found["num_inliers"] < COLMAP_MAPPING.min_matches:
                continue
            inliers = pair.points[np.asarray(found["inlier_mask"], dtype=bool).ravel()]
            columns = [np.searchsorted(keyframes.observations[f][0], inliers) for f in (pair.first, pair.second)]
            geometry = colmap.TwoViewGeometry()
            geometry.config = colmap.TwoViewGeometryConfiguration.CALIBRATED
            geometry.E = found["E"]
            geometry.cam2_from_cam1 = found["cam2_from_cam1"]
            geometry.inlier_matches = np.stack(columns, axis=1).astype(np.uint32)
            geometries[i] = geometry

    run_chunks(solve, balanced_chunks(np.arange(len(keyframes.pairs) + 1), thread_count()))
    return geometries


def _set_adjustment(options: PycolmapObject, max_error: float, *, refine_distortion: bool) -> None:
    colmap = quiet_pycolmap()
    options.refine_extra_params = refine_distortion
    options.print_summary = False
    options.ceres.use_gpu = False
    options.ceres.loss_function_type = colmap.LossFunctionType.CAUCHY
    options.ceres.loss_function_scale = max_error / COLMAP_MAPPING.loss_divisor
    options.ceres.solver_options.max_num_iterations = COLMAP_MAPPING.adjustment_iterations
    options.ceres.solver_options.function_tolerance = COLMAP_MAPPING.adjustment_tolerance
    options.ceres.solver_options.num_threads = _SOLVER_THREADS


def adjust_bundle(keyframes: Keyframes, model: ColmapModel, lens: Lens, *, refine_distortion: bool) -> ColmapModel:
    """Adjusts poses, points, focal length and, where asked for, one distortion coefficient of a model.

    All observations of the points take part again, also those that the mapper had left out.
    """
    colmap = quiet_pycolmap()
    reconstruction = colmap.Reconstruction()
    reconstruction.add_camera_with_trivial_rig(camera_of(lens, keyframes.width, keyframes.height))
    seen: dict[int, list[tuple[int, int]]] = {}
    for frame in sorted(model.poses):
        points, pixels = keyframes.observations[frame]
        image = colmap.Image(name=_name(frame), keypoints=pixels + HALF_PIXEL, camera_id=CAMERA_ID, image_id=frame + 1)
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


def _model(reconstruction: PycolmapObject, keyframes: Keyframes) -> ColmapModel:
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
    if len(points) < COLMAP_MAPPING.min_matches:
        return None
    options = colmap.AbsolutePoseEstimationOptions()
    options.ransac = ransac_options(max_error)
    refinement = colmap.AbsolutePoseRefinementOptions()
    refinement.loss_function_scale = max_error / COLMAP_MAPPING.loss_divisor
    found = colmap.estimate_and_refine_absolute_pose(
        pixels + HALF_PIXEL, points, camera_of(lens, width, height), options, refinement
    )
    if found is None or found["num_inliers"] < COLMAP_MAPPING.min_matches:
        return None
    return np.array(found["cam_from_world"].matrix()), int(found["num_inliers"])
