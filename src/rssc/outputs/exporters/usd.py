"""USD: a camera with lens, shutter and animated pose, and the points, as text (.usda) that usd-core reads.

The text is written here: a stage of a camera and points is forty lines, and usd-core is 150 MB.

UsdGeomCamera (https://openusd.org/release/api/class_usd_geom_camera.html) is a pinhole with an offset film back, all in
tenths of a unit. With the film back `horizontalAperture` by `verticalAperture` and its offset,

    x_right = aperture_x / focal * (pixel_x + 1/2 - W / 2) / W + offset_x / focal.

It knows neither distortion nor rows. NVIDIA's RTX renderers do, by attributes of their schemas
(https://nvidia-omniverse.github.io/ovrtx/sensors/cameras/lens_calibration.html, .../rolling_shutter.html): OpenCV's
lens, and for the shutter the order of the lines, the time from one to the next and how long each is exposed, in seconds
as fractions. Other readers ignore them, and see the camera of undistorted frames.

One lens is estimated for the whole clip; attributes without time samples hold at every frame.
"""

import json
from collections.abc import Iterable

from rssc.model.arrays import FloatArray
from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files
from rssc.outputs.exporters.film_camera import FILM, FILM_WIDTH_MM, FilmPath, film_path, film_shutter, median_distance

_TENTHS_PER_MM = 0.01
"""Tenths of a unit, where that is a metre, as it is with a board; without one, the scale is anybody's."""
_SCAN_ORDERS = {
    "top_to_bottom": "topToBottom",
    "bottom_to_top": "bottomToTop",
    "left_to_right": "leftToRight",
    "right_to_left": "rightToLeft",
}
_MODELS = {
    "standard": ("opencvPinhole", "OmniLensDistortionOpenCvPinholeAPI"),
    "fisheye": ("opencvFisheye", "OmniLensDistortionOpenCvFisheyeAPI"),
}


def _tuple(values: Iterable[float]) -> str:
    return f"({', '.join(repr(float(value)) for value in values)})"


def _samples(path: FilmPath, values: FloatArray) -> str:
    rows = zip(path.times, values, strict=True)
    return "".join(f"            {float(time)!r}: {_tuple(value)},\n" for time, value in rows)


def _lens_attributes(export: Export) -> tuple[str, str]:
    """NVIDIA's schema for the lens, and its attributes."""
    camera, lens = export.camera, export.camera.lens
    model = export.tool_model(export.lens_model.opencv)
    name, schema = _MODELS[model.name]
    numbers = {"fx": lens.fx, "fy": lens.fy, "cx": lens.cx, "cy": lens.cy}
    numbers |= dict(zip(model.coefficients, export.coefficients(model.coefficients), strict=True))
    prefix = f"omni:lensdistortion:{name}:"
    text = f'        token omni:lensdistortion:model = "{name}"\n'
    text += f"        int2 {prefix}imageSize = ({camera.width}, {camera.height})\n"
    return schema, text + "".join(f"        float {prefix}{key} = {value!r}\n" for key, value in numbers.items())


def _shutter_attributes(export: Export) -> str:
    """NVIDIA's, which count lines and seconds; USD's own say only how long any of them is open, in frames."""
    shutter, prefix = film_shutter(export), "omni:rtx:rollingShutter:"
    order = _SCAN_ORDERS[export.camera.shutter.direction] if shutter.readout else "none"
    return (
        f"        double shutter:open = {-shutter.open / 2!r}\n"
        f"        double shutter:close = {shutter.open / 2!r}\n"
        f'        token {prefix}scanOrder = "{order}"\n'
        f"        double2 {prefix}lineOffset = {_tuple((export.readout_time_s, export.line_count))}\n"
        f"        double2 {prefix}lineExposure = {_tuple((shutter.exposure * export.frame_interval_s, 1))}\n"
    )


def _camera(export: Export) -> str:
    camera, lens, path = export.camera, export.camera.lens, film_path(export)
    width = FILM_WIDTH_MM * _TENTHS_PER_MM
    focal = lens.fx * width / camera.width
    height = focal * camera.height / lens.fy
    offset_x = width / camera.width * ((camera.width - 1) / 2 - lens.cx)
    offset_y = height / camera.height * (lens.cy - (camera.height - 1) / 2)
    distance = median_distance(export)
    schema, lens_attributes = _lens_attributes(export)
    return (
        f'    def Camera "camera" (\n        prepend apiSchemas = ["{schema}", "OmniRtxRollingShutterAPI"]\n    )\n'
        "    {\n"
        '        token projection = "perspective"\n'
        f"        float focalLength = {focal!r}\n"
        f"        float horizontalAperture = {width!r}\n"
        f"        float verticalAperture = {height!r}\n"
        f"        float horizontalApertureOffset = {offset_x!r}\n"
        f"        float verticalApertureOffset = {offset_y!r}\n"
        f"        float2 clippingRange = {_tuple((FILM.nearest * distance, FILM.furthest * distance))}\n"
        + _shutter_attributes(export)
        + lens_attributes
        + "        double3 xformOp:translate.timeSamples = {\n"
        + _samples(path, path.centres)
        + "        }\n        quatd xformOp:orient.timeSamples = {\n"
        + _samples(path, path.quaternions_wxyz)
        + "        }\n"
        '        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]\n'
        "    }\n"
    )


def _points(export: Export) -> str:
    positions = ", ".join(_tuple(point) for point in export.frames.scene.points)
    width = FILM.point_width * median_distance(export)
    return (
        f'    def Points "points"\n    {{\n        point3f[] points = [{positions}]\n'
        f'        float[] widths = [{width!r}] (\n            interpolation = "constant"\n        )\n    }}\n'
    )


def _usd(export: Export) -> Files:
    numbers = export.frames.frame_numbers
    # Of JSON's characters, a string of USD needs these two escaped.
    said = json.dumps(dict(export.statement)).replace("\\", "\\\\").replace('"', '\\"')
    text = (
        f'#usda 1.0\n(\n    customLayerData = {{\n        string rssc = "{said}"\n    }}\n'
        '    defaultPrim = "rssc"\n'
        f"    startTimeCode = {int(numbers[0])}\n    endTimeCode = {int(numbers[-1])}\n"
        f"    timeCodesPerSecond = {export.rate!r}\n    framesPerSecond = {export.rate!r}\n"
        '    metersPerUnit = 1\n    upAxis = "Y"\n)\n\n'
        'def Xform "rssc"\n{\n' + _camera(export) + "\n" + _points(export) + "}\n"
    )
    return {"camera.usda": text.encode()}


USD = Exporter(
    units="time codes are frame numbers of the source; film back and focal length in tenths of a unit, as if it were a "
    "metre and the back 36 mm wide; attributes of omni:lensdistortion in pixels; scene units; shutter:open and "
    "shutter:close in frames, lineOffset and lineExposure in seconds",
    span="H line delays: row v is read readout_ratio * (v - (H - 1) / 2) / H after the time code; shutter:open to "
    "shutter:close are those and the exposure",
    reference_row="middle row, (H - 1) / 2 counted from 0: it is read at the time code of its frame",
    pixel_centre=CENTRE_ZERO,
    files=_usd,
    has_poses=True,
)
