"""What is known of a lens model besides its equations. Each lens file describes its own."""

from typing import Literal, NamedTuple

Family = Literal["perspective", "fisheye"]
"""How rays meet the plane on which the distortion acts: at X / Z and Y / Z, or at the angle from the axis."""


class ToolModel(NamedTuple):
    """A lens model as another tool has it."""

    name: str
    coefficients: tuple[str, ...]
    """Our names of its coefficients, in its order; those that our model lacks are zero."""


class LensModel(NamedTuple):
    """A row of the registry."""

    name: str
    family: Family
    coefficients: tuple[str, ...]
    """Names of the distortion coefficients, in the order in which they are stored; at most twelve."""
    parent: str | None
    """The model that this one becomes where the coefficients that only this one has are zero."""
    typical: tuple[float, ...]
    """Coefficients of a usual lens, for simulation and tests."""
    colmap: ToolModel
    """As COLMAP has it, with two focal lengths."""
    colmap_shorter: dict[str, tuple[int, ...]]
    """COLMAP's models with fewer parameters: where fx, fy, cx, cy and our first coefficients are in its list."""
    kalibr: ToolModel | None
    """As Kalibr has it; None where it has no such lens."""
    opencv: ToolModel | None
    """As OpenCV has it, "standard" (cv2.projectPoints) or "fisheye" (cv2.fisheye); None where it has no such lens."""
    words: str
    """For the report."""


OPENCV_STANDARD = ToolModel("standard", ("k1", "k2", "p1", "p2"))
OPENCV_RATIONAL = ToolModel("standard", ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"))
OPENCV_FISHEYE = ToolModel("fisheye", ("k1", "k2", "k3", "k4"))
