"""Tools that take a readout time and not much more: OpenDroneMap."""

from rssc.errors import InputError
from rssc.outputs.exporters.exporter import CENTRE_ZERO, DOWNWARDS, Export, Exporter, Files, comment


def _opendronemap(export: Export) -> Files:
    if export.readout_time_s == 0:
        raise InputError("opendronemap takes a readout time of 0 ms for unknown; leave --rolling-shutter out instead.")
    flags = f"--rolling-shutter --rolling-shutter-readout {1e3 * export.readout_time_s:.4f}\n"
    return {"opendronemap.txt": (comment(export.statement) + flags).encode()}


OPENDRONEMAP = Exporter(
    units="milliseconds per frame",
    span="H line delays: row v is read readout * (v - H / 2) / H after the pose of the image",
    reference_row="row H / 2: the pose of an image is that of its middle row",
    pixel_centre=CENTRE_ZERO,
    files=_opendronemap,
    directions=DOWNWARDS,
)
