"""ORB-SLAM3's settings (https://github.com/UZ-SLAMLab/ORB_SLAM3, src/Settings.cc), for monocular video.

ORB-SLAM3 takes every frame for one of a global shutter. It insists on numbers of the kind that it expects (a whole
frame rate, real focal lengths), and on settings of its features and viewer; these are those of its own examples.
"""

from rssc.outputs.exporters.exporter import CENTRE_ZERO, Export, Exporter, Files, comment

_REST = """
Camera.RGB: 1

ORBextractor.nFeatures: 1000
ORBextractor.scaleFactor: 1.2
ORBextractor.nLevels: 8
ORBextractor.iniThFAST: 20
ORBextractor.minThFAST: 7

Viewer.KeyFrameSize: 0.05
Viewer.KeyFrameLineWidth: 1.0
Viewer.GraphLineWidth: 0.9
Viewer.PointSize: 2.0
Viewer.CameraSize: 0.08
Viewer.CameraLineWidth: 3.0
Viewer.ViewpointX: 0.0
Viewer.ViewpointY: -0.7
Viewer.ViewpointZ: -3.5
Viewer.ViewpointF: 500.0
"""


def _orb_slam3(export: Export) -> Files:
    camera, lens = export.camera, export.camera.lens
    names = ("k1", "k2", "k3", "k4") if export.is_fisheye else ("k1", "k2", "p1", "p2")
    numbers = {"fx": lens.fx, "fy": lens.fy, "cx": lens.cx, "cy": lens.cy}
    numbers |= dict(zip(names, export.distortion, strict=True))
    text = (
        "%YAML:1.0\n---\n"
        + comment(export.statement)
        + 'File.version: "1.0"\n\n'
        + f'Camera.type: "{"KannalaBrandt8" if export.is_fisheye else "PinHole"}"\n'
        + "".join(f"Camera1.{name}: {value!r}\n" for name, value in numbers.items())
        + f"\nCamera.width: {camera.width}\nCamera.height: {camera.height}\nCamera.fps: {round(export.rate)}"
        + _REST
    )
    return {"orb_slam3.yaml": text.encode()}


ORB_SLAM3 = Exporter(
    units="pixels; frames per second, rounded as ORB-SLAM3 wants it",
    span="H line delays: from the first row to one past the last; in the comment only",
    reference_row="none: ORB-SLAM3 knows no rows, and takes a frame for that of a global shutter",
    pixel_centre=CENTRE_ZERO,
    files=_orb_slam3,
    has_row_times=False,
)
