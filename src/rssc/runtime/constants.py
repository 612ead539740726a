"""Tuned numbers of a stage, in one place.

A stage that has tuned numbers declares them as a frozen dataclass with this base, a sentence under each field saying
where it comes from, and reads them through one instance when it runs (not as default arguments, not at import), so that
`python -m benchmarks sensitivity` can change one at a time and see what moves:

    @dataclass(frozen=True)
    class TrackingConstants(Constants):
        min_distance_px: float = 7.0
        \"\"\"Between corners; half a patch, so that neighbours share at most half of their pixels.\"\"\"

    TRACKING = TrackingConstants()
"""


class Constants:
    """Base of the tuned numbers of a stage."""
