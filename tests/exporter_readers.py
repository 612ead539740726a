"""What other tools make of exported files, written out from their documentation and source; nothing of ours is used.

A reader takes the folder, a frame number and a line (row, or column of a sensor that reads sideways) and returns a
view: the (3, 4) world-to-camera pose that the tool uses there, and its projection from camera coordinates to pixels
with centres at integers. Tools that hold no poses get ours, at the time that they compute for that line:
`Truth.poses(frame, delay)` is the true pose `delay` seconds after row 0 of a frame.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np
import pycolmap
import yaml
from scipy.linalg import expm
from scipy.spatial.transform import Rotation, Slerp

Project = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class View:
    cam_from_world: np.ndarray
    project: Project


@dataclass(frozen=True)
class Truth:
    """What a tool without poses is told, and the size of the image."""

    poses: Callable[[int, float], np.ndarray]
    width: int
    height: int


def opencv_projection(matrix, coefficients, *, fisheye: bool) -> Project:
    matrix, coefficients = np.array(matrix, dtype=float), np.array(coefficients, dtype=float).ravel()

    def project(points):
        points = np.ascontiguousarray(points, dtype=float).reshape(-1, 1, 3)
        still = np.zeros(3)
        project_points = cv2.fisheye.projectPoints if fisheye else cv2.projectPoints
        return project_points(points, still, still, matrix, coefficients)[0].reshape(-1, 2)

    return project


def intrinsic_matrix(fx, fy, cx, cy):
    return [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]


def colmap(folder, frame, line, truth, *, binary):
    assert {p.suffix for p in folder.iterdir()} == ({".bin", ".json"} if binary else {".txt", ".json"})
    reconstruction = pycolmap.Reconstruction(folder)
    image = reconstruction.images[frame + 1]
    sidecar = json.loads((folder / "rssc_shutter.json").read_text())
    assert sidecar["pose_row"] == line
    return View(image.cam_from_world().matrix(), lambda points: image.camera.img_from_cam(points) - 0.5)


def opencv(folder, frame, line, truth):
    storage = cv2.FileStorage(str(folder / "camera.yaml"), cv2.FILE_STORAGE_READ)
    matrix, coefficients = storage.getNode("camera_matrix").mat(), storage.getNode("distortion_coefficients").mat()
    assert (storage.getNode("image_width").real(), storage.getNode("image_height").real()) == (
        truth.width,
        truth.height,
    )
    backwards = storage.getNode("readout_direction").string() in ("bottom_to_top", "right_to_left")
    delay = storage.getNode("line_delay_s").real() * line * (-1 if backwards else 1)
    fisheye = storage.getNode("distortion_model").string() == "fisheye"
    return View(truth.poses(frame, delay), opencv_projection(matrix, coefficients, fisheye=fisheye))


def kalibr(folder, frame, line, truth):
    camera = yaml.safe_load((folder / "camchain.yaml").read_text())["cam0"]
    assert camera["camera_model"] == "pinhole" and camera["resolution"] == [truth.width, truth.height]
    # Kalibr's reader insists on floats, and on as many coefficients.
    assert all(
        isinstance(x, float) for x in (*camera["intrinsics"], *camera["distortion_coeffs"], camera["line_delay"])
    )
    assert len(camera["distortion_coeffs"]) == 4 and isinstance(camera["rostopic"], str)
    fisheye = {"radtan": False, "equidistant": True}[camera["distortion_model"]]
    project = opencv_projection(
        intrinsic_matrix(*camera["intrinsics"]), camera["distortion_coeffs"], fisheye=fisheye
    )  # fmt: skip
    return View(truth.poses(frame, camera["line_delay"] * line), project)


def ros(folder, frame, line, truth):
    text = (folder / "camera_info.yaml").read_text()
    info = yaml.safe_load(text)

    def array(name):
        entry = info[name]
        return np.array(entry["data"]).reshape(entry["rows"], entry["cols"])

    assert (info["image_width"], info["image_height"]) == (truth.width, truth.height)
    np.testing.assert_array_equal(array("rectification_matrix"), np.eye(3))
    np.testing.assert_array_equal(array("projection_matrix"), np.hstack([array("camera_matrix"), np.zeros((3, 1))]))
    fisheye, count = {"plumb_bob": (False, 5), "rational_polynomial": (False, 8), "equidistant": (True, 4)}[
        info["distortion_model"]
    ]
    coefficients = array("distortion_coefficients")
    assert coefficients.shape == (1, count)
    # ROS has no field for the shutter: people read the comment.
    said = dict(row[2:].split(": ", 1) for row in text.splitlines() if row.startswith("# "))
    backwards = said["direction"] in ("bottom_to_top", "right_to_left")
    delay = float(said["line_delay_s"]) * line * (-1 if backwards else 1)
    return View(truth.poses(frame, delay), opencv_projection(array("camera_matrix"), coefficients, fisheye=fisheye))


def vins(folder, frame, line, truth):
    storage = cv2.FileStorage(str(folder / "vins_camera.yaml"), cv2.FILE_STORAGE_READ)

    def group(name, keys):
        return [storage.getNode(name).getNode(key).real() for key in keys]

    if storage.getNode("model_type").string() == "KANNALA_BRANDT":
        k2, k3, k4, k5, mu, mv, u0, v0 = group(
            "projection_parameters", ("k2", "k3", "k4", "k5", "mu", "mv", "u0", "v0")
        )

        def project(points):
            # camodocal's EquidistantCamera::spaceToPlane.
            theta = np.arccos(points[:, 2] / np.linalg.norm(points, axis=1))
            phi = np.arctan2(points[:, 1], points[:, 0])
            r = theta + k2 * theta**3 + k3 * theta**5 + k4 * theta**7 + k5 * theta**9
            return np.column_stack([mu * r * np.cos(phi) + u0, mv * r * np.sin(phi) + v0])
    else:
        assert storage.getNode("model_type").string() == "PINHOLE"
        matrix = intrinsic_matrix(*group("projection_parameters", ("fx", "fy", "cx", "cy")))
        project = opencv_projection(matrix, group("distortion_parameters", ("k1", "k2", "p1", "p2")), fisheye=False)
    readout, height = storage.getNode("rolling_shutter_tr").real(), storage.getNode("image_height").real()
    # estimator: TR is rolling_shutter_tr where rolling_shutter is set, else 0.
    assert storage.getNode("rolling_shutter").real() == (readout > 0)
    # ProjectionTdFactor: TR / ROW * (row - ROW / 2) after the stamp, which is half a readout after the first row.
    return View(truth.poses(frame, readout / 2 + readout / height * (line - height / 2)), project)


def gyroflow(folder, frame, line, truth):
    profile = json.loads((folder / "gyroflow_lens_profile.json").read_text())
    assert profile["asymmetrical"] is True and profile["calibrator_version"] and profile["calib_dimension"]["w"] > 0
    parameters = profile["fisheye_params"]
    fisheye = {"opencv_standard": False, "opencv_fisheye": True}[profile["distortion_model"]]
    readout = 1e-3 * profile["frame_readout_time"]
    assert profile["global_shutter"] == (readout == 0) and readout >= 0
    direction = profile["frame_readout_direction"]
    count = profile["calib_dimension"]["w" if direction in ("LeftToRight", "RightToLeft") else "h"]
    if direction in ("BottomToTop", "RightToLeft"):
        readout = -readout
    # FrameTransform: start_ts = timestamp - readout / 2, and row y at start_ts + readout / H * y.
    stamp = readout / 2
    delay = stamp - readout / 2 + readout / count * line
    project = opencv_projection(parameters["camera_matrix"], parameters["distortion_coeffs"], fisheye=fisheye)
    return View(truth.poses(frame, delay), project)


def _camera_axes_opencv(transform_matrix):
    world_from_cam = np.array(transform_matrix)
    assert np.linalg.det(world_from_cam[:3, :3]) > 0
    world_from_cam = world_from_cam @ np.diag([1.0, -1.0, -1.0, 1.0])
    return world_from_cam


def nerfstudio(folder, frame, line, truth, within=0.0):
    document = json.loads((folder / "transforms.json").read_text())
    entry = document["frames"][frame]
    assert (document["w"], document["h"]) == (truth.width, truth.height)
    flip = np.array([1.0, -1.0, -1.0])
    linear, angular = flip * entry["camera_linear_velocity"], flip * entry["camera_angular_velocity"]
    twist = np.zeros((4, 4))
    twist[:3, :3] = np.cross(np.eye(3), angular)
    twist[:3, 3] = linear
    # rasterize_forward: roll_time = rolling_shutter_time * (py / H - 0.5), py the row plus one half, and the mean over
    # blur_rel = (-0.5 .. 0.5) * exposure_time + roll_time.
    time = document["rolling_shutter_time"] * ((line + 0.5) / document["h"] - 0.5) + within * document["exposure_time"]
    world_from_cam = _camera_axes_opencv(entry["transform_matrix"]) @ expm(time * twist)
    fisheye = {"OPENCV": False, "OPENCV_FISHEYE": True}[document["camera_model"]]
    names = ("k1", "k2", "k3", "k4") if fisheye else ("k1", "k2", "p1", "p2")
    return View(np.linalg.inv(world_from_cam)[:3], _half_pixel_projection(document, names, fisheye))


def _half_pixel_projection(document, names, fisheye):
    matrix = intrinsic_matrix(document["fl_x"], document["fl_y"], document["cx"], document["cy"])
    project = opencv_projection(matrix, [document[name] for name in names], fisheye=fisheye)
    return lambda points: project(points) - 0.5


def _interpolated(start, end, t):
    """Rotation spherically, translation linearly."""
    pose = np.empty((3, 4))
    rotations = Rotation.from_matrix([start[:3, :3], end[:3, :3]])
    pose[:, :3] = Slerp([0, 1], rotations)(t).as_matrix()
    pose[:, 3] = (1 - t) * start[:3, 3] + t * end[:3, 3]
    return pose


def instant_ngp(folder, frame, line, truth, within=0.0):
    document = json.loads((folder / "transforms.json").read_text())
    entry = document["frames"][frame]
    # read_lens of nerf_loader.cu: coefficients land in four places, and a lens without any is a pinhole.
    parameters, fisheye = [0.0] * 4, document.get("is_fisheye", False)
    for name, place in (("k1", 0), ("k2", 1), ("k3", 2), ("k4", 3), ("p1", 2), ("p2", 3)):
        parameters[place] = document.get(name, parameters[place])
    document |= {f"_{i}": value for i, value in enumerate(parameters)}
    fisheye = fisheye and any(np.float32(parameters))
    a, b, c, blur = document["rolling_shutter"]
    u, v = (line + 0.5) / document["w"], (line + 0.5) / document["h"]
    assert a == 0 and b * c == 0 and b + c + blur == 1
    # get_xform_given_rolling_shutter, with motionblur_time uniform in 0 .. 1.
    t = a + b * u + c * v + blur * (within + 0.5)
    start, end = (_camera_axes_opencv(entry[f"transform_matrix_{name}"]) for name in ("start", "end"))
    world_from_cam = np.vstack([_interpolated(start, end, t), [0, 0, 0, 1]])
    project = _half_pixel_projection(document, ("_0", "_1", "_2", "_3"), fisheye)
    return View(np.linalg.inv(world_from_cam)[:3], project)


def gsplat(folder, frame, line, truth):
    arrays = np.load(folder / "gsplat.npz")
    width, height, image_y = int(arrays["width"]), int(arrays["height"]), line + 0.5
    # shutter_relative_frame_time of Cameras.cuh, by RollingShutterType; a global shutter (4) takes no second pose.
    kind = int(arrays["rolling_shutter"])
    assert ("viewmats_rs" in arrays) == (kind != 4)
    t = {
        0: lambda: np.floor(image_y) / (height - 1),
        1: lambda: np.floor(image_y) / (width - 1),
        2: lambda: (height - np.ceil(image_y)) / (height - 1),
        3: lambda: (width - np.ceil(image_y)) / (width - 1),
        4: lambda: 0.0,
    }[kind]()
    fisheye = {"pinhole": False, "fisheye": True}[str(arrays["camera_model"])]
    radial = arrays["radial_coeffs"][frame]
    coefficients = radial
    if not fisheye:
        coefficients = [*radial[:2], *arrays["tangential_coeffs"][frame], *radial[2:]]
    project = opencv_projection(arrays["Ks"][frame], coefficients, fisheye=fisheye)
    pose = _interpolated(arrays["viewmats"][frame], arrays["viewmats" if kind == 4 else "viewmats_rs"][frame], t)
    return View(pose, lambda points: project(points) - 0.5)


BLURRED_READERS = {"nerfstudio": nerfstudio, "instant-ngp": instant_ngp}
"""Tools that average over the exposure; `within` is the moment in it, -0.5 when it begins and 0.5 when it ends."""

READERS = {
    "colmap": partial(colmap, binary=True),
    "colmap-text": partial(colmap, binary=False),
    "opencv": opencv,
    "kalibr": kalibr,
    "ros": ros,
    "vins": vins,
    "gyroflow": gyroflow,
    "nerfstudio": nerfstudio,
    "gsplat": gsplat,
    "instant-ngp": instant_ngp,
}
