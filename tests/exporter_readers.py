"""What other tools make of exported files, written out from their documentation and source; nothing of ours is used.

A reader takes the folder, a frame number and a line (row, or column of a sensor that reads sideways) and returns a
view: the (3, 4) world-to-camera pose that the tool uses there, and its projection from camera coordinates to pixels
with centres at integers. Tools that hold no poses get ours, at the time that they compute for that line:
`Truth.poses(frame, delay)` is the true pose `delay` seconds after row 0 of a frame.
"""

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

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
    redistort: Project
    """Pixels of undistorted frames in those of the footage: what `rssc rectify --undistort` undoes."""


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
    delay = _delay_said(_said(text), line)
    return View(truth.poses(frame, delay), opencv_projection(array("camera_matrix"), coefficients, fisheye=fisheye))


def _camodocal(storage):
    """The projection of a camera of camodocal's."""

    def group(name, keys):
        return [storage.getNode(name).getNode(key).real() for key in keys]

    if storage.getNode("model_type").string() == "KANNALA_BRANDT":
        k2, k3, k4, k5, mu, mv, u0, v0 = group(
            "projection_parameters", ("k2", "k3", "k4", "k5", "mu", "mv", "u0", "v0")
        )

        def project(points):
            # EquidistantCamera::spaceToPlane.
            theta = np.arccos(points[:, 2] / np.linalg.norm(points, axis=1))
            phi = np.arctan2(points[:, 1], points[:, 0])
            r = theta + k2 * theta**3 + k3 * theta**5 + k4 * theta**7 + k5 * theta**9
            return np.column_stack([mu * r * np.cos(phi) + u0, mv * r * np.sin(phi) + v0])

        return project
    assert storage.getNode("model_type").string() == "PINHOLE"
    matrix = intrinsic_matrix(*group("projection_parameters", ("fx", "fy", "cx", "cy")))
    return opencv_projection(matrix, group("distortion_parameters", ("k1", "k2", "p1", "p2")), fisheye=False)


def vins(folder, frame, line, truth):
    storage = cv2.FileStorage(str(folder / "vins_camera.yaml"), cv2.FILE_STORAGE_READ)
    readout, height = storage.getNode("rolling_shutter_tr").real(), storage.getNode("image_height").real()
    # estimator: TR is rolling_shutter_tr where rolling_shutter is set, else 0.
    assert storage.getNode("rolling_shutter").real() == (readout > 0)
    # ProjectionTdFactor: TR / ROW * (row - ROW / 2) after the stamp, which is half a readout after the first row.
    delay = readout / 2 + readout / height * (line - height / 2)
    return View(truth.poses(frame, delay), _camodocal(storage))


def ctrl_vio(folder, frame, line, truth):
    """https://github.com/APRIL-ZJU/Ctrl-VIO, odometry_manager.cpp; a feature of row v is at the stamp plus ld * v."""
    odometry = yaml.safe_load((folder / "ctrl_vio_line_delay.yaml").read_text())
    assert odometry["cam_yaml"] == "/ctrl_vio_camera.yaml" and isinstance(odometry["fix_ld"], bool)
    assert 0 <= odometry["ld_lower"] <= odometry["ld_init"] <= odometry["ld_upper"]
    storage = cv2.FileStorage(str(folder / "ctrl_vio_camera.yaml"), cv2.FILE_STORAGE_READ)
    for name, size in (("image_height", truth.height), ("image_width", truth.width)):
        assert storage.getNode(name).isInt() and storage.getNode(name).real() == size
    assert storage.getNode("focal_length").isInt() and storage.getNode("image_topic").string()
    return View(truth.poses(frame, odometry["ld_init"] * line), _camodocal(storage))


def _said(text):
    """What the comment says: of tools without a field for the shutter, people read it."""
    return dict(row[2:].split(": ", 1) for row in text.splitlines() if row.startswith("# ") and ": " in row)


def _delay_said(said, line):
    backwards = said["direction"] in ("bottom_to_top", "right_to_left")
    return float(said["line_delay_s"]) * line * (-1 if backwards else 1)


def orb_slam3(folder, frame, line, truth):
    """https://github.com/UZ-SLAMLab/ORB_SLAM3, src/Settings.cc: numbers of the wrong kind end the program."""
    path = folder / "orb_slam3.yaml"
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
    assert storage.getNode("File.version").string() == "1.0"

    def real(name):
        assert storage.getNode(name).isReal()
        return storage.getNode(name).real()

    def whole(name):
        assert storage.getNode(name).isInt()
        return storage.getNode(name).real()

    assert (whole("Camera.width"), whole("Camera.height")) == (truth.width, truth.height)
    assert whole("Camera.fps") > 0 and whole("ORBextractor.nFeatures") > 0 and real("ORBextractor.scaleFactor") > 1
    assert {whole(f"ORBextractor.{name}") for name in ("nLevels", "iniThFAST", "minThFAST")} == {8, 20, 7}
    viewer = ("KeyFrameSize KeyFrameLineWidth GraphLineWidth PointSize CameraSize CameraLineWidth ViewpointX "
              "ViewpointY ViewpointZ ViewpointF")  # fmt: skip
    assert np.isfinite([real(f"Viewer.{name}") for name in viewer.split()]).all()
    fisheye = {"PinHole": False, "KannalaBrandt8": True}[storage.getNode("Camera.type").string()]
    matrix = intrinsic_matrix(*(real(f"Camera1.{name}") for name in ("fx", "fy", "cx", "cy")))
    names = ("k1", "k2", "k3", "k4") if fisheye else ("k1", "k2", "p1", "p2")
    project = opencv_projection(matrix, [real(f"Camera1.{name}") for name in names], fisheye=fisheye)
    return View(truth.poses(frame, _delay_said(_said(path.read_text()), line)), project)


def openvins(folder, frame, line, truth):
    """https://github.com/rpng/open_vins, VioManagerOptions.h, print_and_load_state; a frame has one time."""
    path = folder / "kalibr_imucam_chain.yaml"
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
    camera = storage.getNode("cam0")

    def numbers(name):
        node = camera.getNode(name)
        return [node.at(i).real() for i in range(node.size())]

    assert numbers("resolution") == [truth.width, truth.height]
    fisheye = {"radtan": False, "equidistant": True}[camera.getNode("distortion_model").string()]
    project = opencv_projection(
        intrinsic_matrix(*numbers("intrinsics")), numbers("distortion_coeffs"), fisheye=fisheye
    )  # fmt: skip
    said = _said(path.read_text())
    count = truth.height if said["direction"] in ("top_to_bottom", "bottom_to_top") else truth.width
    assert abs(camera.getNode("timeshift_cam_imu").real() - _delay_said(said, (count - 1) / 2)) < 1e-9
    return View(truth.poses(frame, _delay_said(said, line)), project)


def openicc(folder, frame, line, truth):
    """https://github.com/urbste/OpenImuCameraCalibrator, src/io/read_camera_calibration.cc, and Theia's models in
    https://github.com/sweeneychris/TheiaSfM, src/theia/sfm/camera/."""
    document = json.loads((folder / "openicc_camera.json").read_text())
    intrinsics = document["intrinsics"]
    assert (document["image_width"], document["image_height"]) == (truth.width, truth.height) and document["fps"] > 0
    focal, aspect = intrinsics["focal_length"], intrinsics["aspect_ratio"]
    centre = np.array([intrinsics["principal_pt_x"], intrinsics["principal_pt_y"]])

    def project(points):
        x, y = points[:, 0] / points[:, 2], points[:, 1] / points[:, 2]
        r2 = x**2 + y**2
        k = [intrinsics.get(f"radial_distortion_{i}", 0.0) for i in (1, 2, 3, 4)]
        if document["intrinsic_type"] == "FISHEYE":
            r, theta = np.sqrt(r2), np.arctan(np.sqrt(r2))
            scale = theta * (1 + sum(c * theta ** (2 * i + 2) for i, c in enumerate(k))) / r
            distorted = [x * scale, y * scale]
        else:
            assert document["intrinsic_type"] == "PINHOLE_RADIAL_TANGENTIAL"
            t1, t2 = intrinsics["tangential_distortion_1"], intrinsics["tangential_distortion_2"]
            radial = 1 + k[0] * r2 + k[1] * r2**2 + k[2] * r2**3
            distorted = [
                x * radial + t2 * (r2 + 2 * x**2) + 2 * t1 * x * y,
                y * radial + t1 * (r2 + 2 * y**2) + 2 * t2 * x * y,
            ]
        return focal * np.column_stack([distorted[0], aspect * distorted[1]]) + centre

    return View(truth.poses(frame, _delay_said(document["rssc"], line)), project)


def opendronemap(folder, frame, line, truth):
    """https://github.com/OpenDroneMap/ODM, opendm/camera.py and photo.py; OpenSfM's BrownPerspectiveCamera in
    https://github.com/OpenDroneMap/OpenSfM, opensfm/types.py, get_K_in_pixel_coordinates."""
    rows = (folder / "opendronemap.txt").read_text().splitlines()
    flags = shlex.split(" ".join(row for row in rows if not row.startswith("#")))
    assert flags[:2] == ["--rolling-shutter", "--rolling-shutter-readout"] and flags[3:] == [
        "--cameras",
        "cameras.json",
    ]
    cameras = json.loads((folder / "cameras.json").read_text())
    # ODM_Photo.camera_id of an image without EXIF, less the "v2 " that get_opensfm_camera_models puts before it.
    (key,) = cameras
    assert len(key.split(" ")) >= 6
    make, model, ratio = "", "", 0.85
    expected = ["v2", make, model, str(truth.width), str(truth.height), "brown", str(ratio)[:6]]
    assert f"v2 {key}" == " ".join(expected).lower()
    camera = cameras[key]
    lens = {"focal_x", "focal_y", "c_x", "c_y", "k1", "k2", "p1", "p2", "k3"}
    assert set(camera) == lens | {"width", "height", "projection_type"} and camera["projection_type"] == "brown"
    size = max(camera["width"], camera["height"])
    to_pixels = np.array([[size, 0, (camera["width"] - 1) / 2], [0, size, (camera["height"] - 1) / 2], [0, 0, 1]])
    matrix = to_pixels @ intrinsic_matrix(camera["focal_x"], camera["focal_y"], camera["c_x"], camera["c_y"])
    project = opencv_projection(matrix, [camera[name] for name in ("k1", "k2", "p1", "p2", "k3")], fisheye=False)
    # rs_correct: readout * (row - H / 2) / H after the pose, which is half a readout after the first row.
    readout = 1e-3 * float(flags[2])
    return View(truth.poses(frame, readout / 2 + readout * (line - truth.height / 2) / truth.height), project)


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


@lru_cache(maxsize=2)
def _stage(path, _changed):
    from pxr import Usd

    return Usd.Stage.Open(path)


def usd(folder, frame, line, truth):
    """usd-core itself; of NVIDIA's attributes, which only its renderers read, as their documentation has them:
    https://nvidia-omniverse.github.io/ovrtx/sensors/cameras/ (lens_calibration.html, rolling_shutter.html)."""
    from pxr import UsdGeom

    path = folder / "camera.usda"
    stage = _stage(str(path), path.stat().st_mtime_ns)
    prim = stage.GetPrimAtPath("/rssc/camera")
    assert {"OmniRtxRollingShutterAPI"} < set(prim.GetMetadata("apiSchemas").GetAddedOrExplicitItems())
    number, rate = stage.GetStartTimeCode() + frame, stage.GetTimeCodesPerSecond()
    assert number <= stage.GetEndTimeCode() and UsdGeom.GetStageUpAxis(stage) == "Y"

    def attribute(name):
        return prim.GetAttribute(name).Get(number)

    order = attribute("omni:rtx:rollingShutter:scanOrder")
    count = truth.width if order in ("leftToRight", "rightToLeft") else truth.height
    offset = np.divide(*attribute("omni:rtx:rollingShutter:lineOffset")) * rate
    exposure = np.divide(*attribute("omni:rtx:rollingShutter:lineExposure")) * rate
    assert (order == "none") == (offset == 0)
    camera = UsdGeom.Camera(prim)
    assert abs(camera.GetShutterOpenAttr().Get(number) + (count * offset + exposure) / 2) < 1e-9
    assert abs(camera.GetShutterCloseAttr().Get(number) - (count * offset + exposure) / 2) < 1e-9
    time = number + offset * (line - (count - 1) / 2) * (-1 if order in ("bottomToTop", "rightToLeft") else 1)
    world_from_cam = _camera_axes_opencv(np.array(camera.ComputeLocalToWorldTransform(time)).T)
    name = attribute("omni:lensdistortion:model")
    names = {
        "opencvPinhole": ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"),
        "opencvFisheye": ("k1", "k2", "k3", "k4"),
    }[name]
    assert tuple(attribute(f"omni:lensdistortion:{name}:imageSize")) == (truth.width, truth.height)
    matrix = intrinsic_matrix(*(attribute(f"omni:lensdistortion:{name}:{key}") for key in ("fx", "fy", "cx", "cy")))
    coefficients = [attribute(f"omni:lensdistortion:{name}:{key}") or 0.0 for key in names]
    # What every reader of USD sees: the pinhole with the same matrix, in OpenGL's camera axes.
    frustum = np.array(camera.GetCamera(time).frustum.ComputeProjectionMatrix()).T
    points = np.array([[-1.0, 0.5, -3.0, 1.0], [0.2, -0.9, -2.0, 1.0], [0.0, 0.0, -1.0, 1.0]])
    seen = points @ frustum.T
    x, y = seen[:, 0] / seen[:, 3], seen[:, 1] / seen[:, 3]
    pixels = np.column_stack([(x + 1) / 2 * truth.width - 0.5, (1 - y) / 2 * truth.height - 0.5])
    ours = opencv_projection(matrix, np.zeros(4), fisheye=False)(points[:, :3] * [1, -1, -1])
    assert np.abs(pixels - ours).max() < 1e-3
    return View(
        np.linalg.inv(world_from_cam)[:3], opencv_projection(matrix, coefficients, fisheye=name == "opencvFisheye")
    )  # fmt: skip


class Thing:
    """Anything in Blender: attributes come into being when they are asked for, and take whatever they are given."""

    def __getattr__(self, name):
        self.__dict__[name] = Thing()
        return self.__dict__[name]

    def __setitem__(self, name, value):
        self.__dict__[name] = value

    def __call__(self, *arguments):
        self.__dict__["arguments"] = arguments
        return Thing()


@lru_cache(maxsize=2)
def run_in_blender(path, _changed):
    """The scene that a script makes, of the parts of Blender's Python that it uses: Blender itself is not here.

    Keys are in `scene.camera.keys`, as Blender keeps them: (frame, value) of each property.
    """
    bpy, objects = Thing(), {}

    def new_object(name, data):
        made = Thing()
        made.data, made.keys = data, {"location": [], "rotation_quaternion": []}
        made.keyframe_insert = lambda key, frame: made.keys[key].append((frame, list(getattr(made, key))))
        objects[name] = made
        return made

    bpy.data.objects.new = new_object
    before = sys.modules.get("bpy")
    sys.modules["bpy"] = bpy
    try:
        exec(compile(Path(path).read_text(), path, "exec"), {})
    finally:
        sys.modules.pop("bpy")
        if before is not None:
            sys.modules["bpy"] = before
    bpy.context.scene.points = objects["rssc points"].data.from_pydata.arguments[0]
    return bpy.context.scene


def blender(folder, frame, line, truth):
    """BKE_camera_params_compute_viewplane of https://projects.blender.org/blender/blender, source/blender/blenkernel/
    intern/camera.cc, and camera_sample of its intern/cycles/kernel/camera/camera.h. Between keys we draw lines, which
    are further from the path than Blender's curves; `python -m benchmarks blender` asks Blender itself."""
    path = folder / "blender_scene.py"
    scene = run_in_blender(str(path), path.stat().st_mtime_ns)
    render, camera = scene.render, scene.camera
    width, height = render.resolution_x, render.resolution_y
    assert (width, height, render.resolution_percentage) == (truth.width, truth.height, 100)
    assert min(render.pixel_aspect_x, render.pixel_aspect_y) == 1 and camera.data.sensor_fit == "HORIZONTAL"
    ycor = render.pixel_aspect_y / render.pixel_aspect_x
    focal = camera.data.lens / camera.data.sensor_width * width
    # The view plane is moved by the shift in widths; pixels are ycor high, and those of a row in the middle of it.
    matrix = intrinsic_matrix(
        focal, focal / ycor, (width - 1) / 2 - camera.data.shift_x * width,
        (height - 1) / 2 + camera.data.shift_y * width / ycor,
    )  # fmt: skip
    time = scene.frame_start + frame
    rolling = {"TOP": True, "NONE": False}[scene.cycles.rolling_shutter_type]
    if rolling:
        assert render.use_motion_blur and render.motion_blur_position == "CENTER"
        raster_y, duration = height - 1 - line, scene.cycles.rolling_shutter_duration
        time += render.motion_blur_shutter * (1 - raster_y / height - 0.5) * (1 - duration)
    pose = np.eye(4)
    values = {}
    for name, keys in camera.keys.items():
        times, samples = np.array([key[0] for key in keys]), np.array([key[1] for key in keys])
        assert (np.diff(times) > 0).all()
        values[name] = [np.interp(time, times, column) for column in samples.T]
    pose[:3, :3] = Rotation.from_quat(np.roll(values["rotation_quaternion"], -1)).as_matrix()
    pose[:3, 3] = values["location"]
    pinhole = opencv_projection(matrix, np.zeros(4), fisheye=False)
    return View(
        np.linalg.inv(_camera_axes_opencv(pose))[:3], lambda points: truth.redistort(pinhole(points))
    )  # fmt: skip


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
    "usd": usd,
    "blender": blender,
    "orb-slam3": orb_slam3,
    "openvins": openvins,
    "openicc": openicc,
    "ctrl-vio": ctrl_vio,
    "opendronemap": opendronemap,
}
