"""Many clips of many cameras: each calibrated by itself, combined per camera and mode, in one table."""
