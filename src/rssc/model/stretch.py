"""A stretch: consecutive frames of one source and everything that was estimated for them."""

from dataclasses import dataclass, replace

from rssc.model.arrays import ArrayEquality, FloatArray, Image, IntArray
from rssc.model.scene import Scene


@dataclass(frozen=True, eq=False)
class Stretch(ArrayEquality):
    """Frames of a source with their scene. `scene.frame_times` are in frame intervals from the first of them."""

    scene: Scene
    times_s: FloatArray
    """(f,) time stamp of each frame's first row in seconds."""
    frame_numbers: IntArray
    """(f,) index of each frame in the source."""
    names: tuple[str, ...]
    """Name of each frame: the file name, or `frame_000123` for a video."""
    source: str
    """The file or folder that the frames come from."""
    colours: Image | None = None
    """(p, 3) red, green and blue of the points; None where they are unknown."""
    world: int | None = None
    """Stretches of one number share a world; None where a stretch has one of its own."""

    def over_whole_image(self, frame_interval_s: float) -> "Stretch":
        """The same stretch with its times at row 0 of the whole image, as if black bars were read as well."""
        scene = self.scene
        if scene.camera.active is None:
            return self
        camera, delay = scene.camera.over_whole_image()
        times, poses = scene.frame_times - delay, scene.cam_from_world
        if scene.trajectory is not None:
            poses = scene.trajectory.cam_from_world(times)
        return replace(
            self,
            scene=replace(scene, camera=camera, frame_times=times, cam_from_world=poses),
            times_s=self.times_s - delay * frame_interval_s,
        )
