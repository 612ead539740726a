"""`rssc cache`: what is kept between runs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rssc.cli.options import Printing, PrintingOptions
from rssc.errors import InputError

if TYPE_CHECKING:
    from rssc.cli.terminal import Terminal


@dataclass(frozen=True)
class Cache:
    """Show or clear what is kept between runs.

    `rssc calibrate` keeps tracks and starts, so that another run with the same footage (another lens or method, or
    after an interruption) continues from there. The environment variable RSSC_CACHE names the folder; where it is
    empty, nothing is kept.
    """

    clear: bool = False
    """Remove all of it."""
    printing: PrintingOptions = field(default_factory=Printing)

    def run(self, terminal: "Terminal") -> int:
        from rssc.io.cache import CACHE, CACHE_VARIABLE, open_cache

        cache = open_cache()
        if cache is None:
            raise InputError(f"there is no cache: {CACHE_VARIABLE} is empty, or there is no home folder.")
        if self.clear:
            count = cache.clear()
            terminal.say(f"Removed {count} entries from {cache.folder}", wrap=False)
            terminal.give({"folder": str(cache.folder), "removed": count})
            return 0
        count, size, limit = len(cache.entries()), cache.size, CACHE.limit_bytes
        terminal.say(f"{cache.folder}: {count} entries, {size / 1e6:.1f} of {limit / 1e6:.0f} MB", wrap=False)
        terminal.give({"folder": str(cache.folder), "entries": count, "bytes": size, "limit_bytes": limit})
        return 0
