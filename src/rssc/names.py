"""Names that users write: lens models, methods, and formats of export.

They stand here, apart from what they name, because the command line shows them: `rssc --help` must not load a compiler
and a solver first. Each registry (`LENS_MODELS`, `METHODS`, `EXPORTERS`) has exactly these names, in this order.
"""

from typing import TYPE_CHECKING, Literal

LENS_NAMES = ("pinhole", "radial", "opencv", "full_opencv", "fisheye", "thin_prism_fisheye", "fisheye624")
METHOD_NAMES = ("te", "ceq", "ceh", "dpq", "dph")
FORMAT_WORDS = {
    "colmap": "binary model: lens, poses, points and tracks; the shutter in rssc_shutter.json",
    "colmap-text": "the same as text",
    "opencv": "YAML (cv::FileStorage): camera_matrix, distortion_coefficients, keys of ours for the shutter",
    "kalibr": "camchain, radtan or equidistant; line_delay in s per row",
    "ros": "camera_info YAML, plumb_bob, rational_polynomial or equidistant; the shutter in a comment only",
    "vins": "VINS-Mono configuration, PINHOLE or KANNALA_BRANDT; rolling_shutter_tr in s per frame",
    "gyroflow": "lens profile, opencv_standard or opencv_fisheye; frame_readout_time in ms with its direction",
    "gcsv": "the camera's rotation as the log of a gyroscope, for Gyroflow; with the readout time",
    "opendronemap": "a line of flags: --rolling-shutter --rolling-shutter-readout in ms; the lens in cameras.json",
    "nerfstudio": "transforms.json as 3dgs-deblur reads it: poses of the middle row, velocities, rolling_shutter_time, "
    "exposure_time",
    "gsplat": "arrays (npz): viewmats and viewmats_rs of first and last row, Ks, distortion, RollingShutterType",
    "instant-ngp": "transforms.json: rolling_shutter with transform_matrix_start and transform_matrix_end, "
    "with exposure",
    "usd": "camera with lens, shutter and animated pose, and points (.usda); distortion and rows as NVIDIA's",
    "blender": "a Python script that builds camera, animation and points; the shutter for Cycles",
    "stmap": "ST maps (EXR) of the lens, to undistort and to redistort",
    "stmap-frames": "ST maps (EXR) of every frame, to take its rolling shutter out",
    "tracks": "2D tracks (3DEqualizer's text) as a global shutter would have them at one row",
    "sheet": "Markdown: the number in the units of each tool, with error bars",
    "orb-slam3": "settings (YAML), PinHole or KannalaBrandt8; the shutter in a comment only",
    "openvins": "kalibr_imucam_chain, radtan or equidistant; timeshift_cam_imu to the middle row",
    "openicc": "camera JSON, PINHOLE_RADIAL_TANGENTIAL or FISHEYE, as universal_manipulation_interface reads it, too",
    "ctrl-vio": "camera and line delay (YAML), PINHOLE or KANNALA_BRANDT; ld_init in s per row, and its bounds",
    "row-times": "array (npz): when every pixel is read, in seconds after the frame's time stamp",
}
"""What each format holds."""
DATASET_WORDS = {
    "colmap": "frames rectified and undistorted, with images/ and sparse/0 of one PINHOLE camera: gaussian-splatting, "
    "gsplat's trainer, nerfstudio, and whatever else reads COLMAP and takes a global shutter for granted",
    "nerfstudio": "frames as filmed, with images/, transforms.json for 3dgs-deblur and gsplat.npz for gsplat",
    "ncore": "frames as filmed, as NVIDIA's NCore v4 with its rolling-shutter camera, for 3dgrut (needs nvidia-ncore)",
}
"""What each kind of dataset has."""

if TYPE_CHECKING:
    LensName = str
    """One of `LENS_NAMES`."""
    MethodName = str
    """One of `METHOD_NAMES`."""
    FormatName = str
    """One of `FORMAT_WORDS`."""
else:
    # What the command line offers is what there is.
    LensName = Literal[LENS_NAMES]
    MethodName = Literal[METHOD_NAMES]
    FormatName = Literal[tuple(FORMAT_WORDS)]
