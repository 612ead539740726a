"""Benchmarks: `python -m benchmarks NAME` prints a table and, as its last line, one JSON object."""

import os

# What is measured is made: nothing is taken from earlier runs, which may have had other constants.
os.environ["RSSC_CACHE"] = ""
