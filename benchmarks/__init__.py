"""Benchmarks: `python -m benchmarks NAME` prints a table and, as its last line, one JSON object."""
