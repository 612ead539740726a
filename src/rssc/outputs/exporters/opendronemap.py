"""OpenDroneMap: flags for its command line, and the lens as the cameras.json that `--cameras` takes.

The lens is OpenSfM's "brown" (opensfm/types.py): OpenCV's k1 k2 p1 p2 k3, lengths as shares of the larger side s of the
picture, from its centre:

    focal_x = fx / s,  focal_y = fy / s,  c_x = (cx - (W - 1) / 2) / s,  c_y = (cy - (H - 1) / 2) / s.

A camera's key is make, model, width, height, projection and focal ratio (opendm/photo.py, camera_id); frames that
OpenDroneMap or ffmpeg took from a video have neither make nor model, and 0.85. OpenDroneMap then takes the lens as it
is and estimates none (opendm/osfm.py). Other keys in the file are refused (opendm/camera.py): what is stated of both
files is in the flags'.

It corrects for translation only, and without GPS it switches the correction off
(stages/dataset.py: "Reconstruction is not georeferenced, disabling rolling shutter correction").
"""

from rssc.errors import InputError
from rssc.outputs.exporters.exporter import DOWNWARDS, Export, Exporter, Files, comment, json_bytes

_BROWN = ("k1", "k2", "p1", "p2", "k3")
_UNKNOWN_FOCAL_RATIO = 0.85


def _lens(export: Export) -> dict[str, object]:
    camera, lens = export.camera, export.camera.lens
    size = max(camera.width, camera.height)
    # An empty make and an empty model.
    key = f"  {camera.width} {camera.height} brown {_UNKNOWN_FOCAL_RATIO}"
    return {
        key: {
            "projection_type": "brown",
            "width": camera.width,
            "height": camera.height,
            "focal_x": lens.fx / size,
            "focal_y": lens.fy / size,
            "c_x": (lens.cx - (camera.width - 1) / 2) / size,
            "c_y": (lens.cy - (camera.height - 1) / 2) / size,
            **dict(zip(_BROWN, export.coefficients(_BROWN), strict=True)),
        }
    }


def _opendronemap(export: Export) -> Files:
    if export.readout_time_s == 0:
        raise InputError("opendronemap takes a readout time of 0 ms for unknown; leave --rolling-shutter out instead.")
    flags = f"--rolling-shutter --rolling-shutter-readout {1e3 * export.readout_time_s:.4f}"
    said = comment(export.statement)
    said += "# Without GPS in the images OpenDroneMap switches the correction off, and says so.\n"
    lens = export.camera.lens
    known = zip(lens.coefficient_names, lens.distortion, strict=True)
    if export.is_fisheye or any(value and name not in _BROWN for name, value in known):
        said += f"# --cameras cannot hold a {lens.model} lens: OpenDroneMap estimates its own.\n"
        return {"opendronemap.txt": f"{said}{flags}\n".encode()}
    said += "# The lens in cameras.json is for frames of a video. For images with EXIF, give it the key that\n"
    said += "# OpenDroneMap writes into its own cameras.json.\n"
    return {
        "opendronemap.txt": f"{said}{flags} --cameras cameras.json\n".encode(),
        "cameras.json": json_bytes(_lens(export)),
    }


OPENDRONEMAP = Exporter(
    units="milliseconds per frame; lengths of the lens as shares of the larger side of the image",
    span="H line delays: row v is read readout * (v - H / 2) / H after the pose of the image",
    reference_row="row H / 2: the pose of an image is that of its middle row",
    pixel_centre="c_x and c_y count from the centre of the image, ((W - 1) / 2, (H - 1) / 2) in OpenCV's pixels",
    files=_opendronemap,
    directions=DOWNWARDS,
)
