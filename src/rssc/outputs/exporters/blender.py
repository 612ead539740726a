"""Blender: a Python script that builds camera, animation and points. Run it in Blender's text editor, or by
`blender --python blender_scene.py`.

Blender's camera (BKE_camera_params_compute_viewplane in
https://projects.blender.org/blender/blender/src/branch/main/source/blender/blenkernel/intern/camera.cc) has one focal
length; fx and fy differ by the aspect of a pixel, and the principal point is a shift in widths of the picture:

    fx = lens / sensor_width W,    fx / fy = pixel_aspect_y / pixel_aspect_x = a,
    shift_x = ((W - 1) / 2 - cx) / W,    shift_y = a (cy - (H - 1) / 2) / W.

Cycles renders a rolling shutter from top to bottom (camera_sample in
https://projects.blender.org/blender/blender/src/branch/main/intern/cycles/kernel/camera/camera.h): with y the row from
the bottom, u uniform in 0 .. 1 within the exposure and d the `rolling_shutter_duration`, a ray is at

    t = (u - 1/2) d + (1 - y / H - 1/2) (1 - d) + 1/2

of `motion_blur_shutter` S frames around the frame. With y = H - 1 - v that is our row v if S (1 - d) is the readout and
S d the exposure, half a row late; the keys are moved by as much.

Cycles' camera has no distortion, so that its rows are not the sensor's where the lens has some. The shutter then is
left global, and the camera is that of frames that were rectified and undistorted; `ROLLING_SHUTTER` is for the bold.

`python -m benchmarks blender` has Blender itself run the script and render points.
"""

import json

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.outputs.exporters.exporter import CENTRE_ZERO, DOWNWARDS, Export, Exporter, Files, comment
from rssc.outputs.exporters.film_camera import FILM, FILM_WIDTH_MM, film_path, film_shutter, median_distance

_SCRIPT = """
import bpy

# Whether Cycles renders the rolling shutter. Without it the camera is that of rectified frames (rssc rectify), at the
# time of the middle row. Rows of a camera without distortion are not those of a distorted picture.
ROLLING_SHUTTER = {rolling}
READOUT = {readout!r}  # in frames
EXPOSURE = {exposure!r}  # in frames; 0 where it is unknown
SIZE = {size!r}
FPS = {fps!r}
FRAMES = {frames!r}
LENS = {lens!r}
# Frame, place of the camera and its turn as a quaternion (w, x, y, z).
PATH = [
{path}]
POINTS = [
{points}]


def add_camera():
    camera = bpy.data.objects.new("rssc camera", bpy.data.cameras.new("rssc camera"))
    bpy.context.scene.collection.objects.link(camera)
    for name, value in LENS.items():
        setattr(camera.data, name, value)
    camera["rssc"] = {statement!r}
    camera.rotation_mode = "QUATERNION"
    # Cycles reads a row half a row later than the sensor.
    late = READOUT / SIZE[1] / 2 if ROLLING_SHUTTER else 0.0
    for time, *pose in PATH:
        camera.location, camera.rotation_quaternion = pose[:3], pose[3:]
        camera.keyframe_insert("location", frame=time + late)
        camera.keyframe_insert("rotation_quaternion", frame=time + late)
    return camera


def add_points():
    mesh = bpy.data.meshes.new("rssc points")
    mesh.from_pydata(POINTS, [], [])
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("rssc points", mesh))


def set_scene(camera):
    scene, render = bpy.context.scene, bpy.context.scene.render
    scene.camera = camera
    scene.frame_start, scene.frame_end = FRAMES
    render.resolution_x, render.resolution_y = SIZE
    render.resolution_percentage = 100
    render.pixel_aspect_x, render.pixel_aspect_y = {aspect!r}
    # Blender's rate is a whole number over a base.
    render.fps = max(1, round(FPS))
    render.fps_base = render.fps / FPS
    render.engine = "CYCLES"
    shutter = READOUT * ROLLING_SHUTTER + EXPOSURE
    render.use_motion_blur = shutter > 0
    render.motion_blur_position = "CENTER"
    scene.cycles.rolling_shutter_type = "TOP" if ROLLING_SHUTTER else "NONE"
    if shutter:
        render.motion_blur_shutter = shutter
        scene.cycles.rolling_shutter_duration = EXPOSURE / shutter
    # Poses within a frame that Cycles interpolates between.
    camera.cycles.motion_steps = 5


set_scene(add_camera())
add_points()
"""


def _rows(values: FloatArray) -> str:
    return "".join(f"    {tuple(row)!r},\n" for row in values.tolist())


def _blender(export: Export) -> Files:
    camera, lens, path, shutter = export.camera, export.camera.lens, film_path(export), film_shutter(export)
    aspect = lens.fx / lens.fy
    distance = median_distance(export)
    numbers = export.frames.frame_numbers
    attributes: dict[str, float | str] = {
        "sensor_fit": "HORIZONTAL",
        "sensor_width": FILM_WIDTH_MM,
        "lens": lens.fx * FILM_WIDTH_MM / camera.width,
        "shift_x": ((camera.width - 1) / 2 - lens.cx) / camera.width,
        "shift_y": aspect * (lens.cy - (camera.height - 1) / 2) / camera.width,
        "clip_start": FILM.nearest * distance,
        "clip_end": FILM.furthest * distance,
    }
    text = _SCRIPT.format(
        rolling=shutter.readout > 0 and not any(lens.distortion) and not export.is_fisheye,
        readout=shutter.readout,
        exposure=shutter.exposure,
        size=(camera.width, camera.height),
        fps=export.rate,
        frames=(int(numbers[0]), int(numbers[-1])),
        lens=attributes,
        path=_rows(np.column_stack([path.times, path.centres, path.quaternions_wxyz])),
        points=_rows(export.frames.scene.points),
        aspect=(max(1.0, 1 / aspect), max(1.0, aspect)),
        statement=json.dumps(dict(export.statement)),
    )
    said = "# The camera of a calibration, for Blender 4.2 and later: run this in Blender's text editor, or by\n"
    said += "# blender --python blender_scene.py\n"
    return {"blender_scene.py": (said + comment(export.statement) + text).encode()}


BLENDER = Exporter(
    units="frames of the source; focal length in mm for a sensor 36 mm wide; scene units",
    span="H line delays: motion_blur_shutter (1 - rolling_shutter_duration) frames; Cycles reads row v "
    "that times ((v + 1) / H - 1 / 2) after the frame",
    reference_row="middle row, (H - 1) / 2 counted from 0: it is read at its frame",
    pixel_centre=CENTRE_ZERO,
    files=_blender,
    directions=DOWNWARDS,
    has_poses=True,
)
