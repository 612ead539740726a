"""Recordings with ground truth. One file per dataset; every loader returns `Sequence`s.

shared       the clips of the shared data, where they are present
tum_rsvi     the TUM rolling-shutter visual-inertial dataset, as it is downloaded
folder       any folder with a truth.json; also for WHU-RSVI

Beside them, `golden` loads the fixed bundle adjustment problem of the shared data.
"""

from pathlib import Path

from rssc.datasets import folder, shared, tum_rsvi
from rssc.datasets.sequence import Found, Sequence, TrueTrajectory
from rssc.errors import InputError

__all__ = ["Found", "Sequence", "TrueTrajectory", "find_sequences"]


def find_sequences(source: str) -> Found:
    """The sequences that "shared" or a folder stands for."""
    if source == shared.NAME:
        return shared.find_sequences()
    path = Path(source)
    if not path.is_dir():
        raise InputError(f"{source} is no folder; expected the word {shared.NAME}, or a folder with sequences.")
    for loader in (tum_rsvi, folder):
        found = loader.find_sequences(path)
        if found:
            return Found(found)
    raise InputError(
        f"{source} holds no sequences; expected TUM-RSVI folders with mav0/cam1/data.csv, or folders with "
        f"{folder.TRUTH_NAME} beside a video or images."
    )
