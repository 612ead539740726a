"""`rssc simulate`: clips with exact truth."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from rssc.cli.options import Output, Printing, PrintingOptions
from rssc.outputs.options import SimulateOptions

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Simulate:
    """Render a clip of a textured room with exact truth: truth.json and trajectory.tum beside the frames."""

    output: Output
    """Folder for the clip."""
    options: Annotated[SimulateOptions, arg(name="clip")] = field(default_factory=SimulateOptions)
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.api import simulate

        with terminal.progress() as progress:
            source = simulate(self.output, self.options, progress=progress)
        count = self.options.frames
        terminal.give({"source": str(source), "folder": str(self.output), "frames": count})
        terminal.say(f"Written to {self.output}: {count} frames, truth.json, trajectory.tum", wrap=False)
        return 0
