"""Renders drawn clips on a machine with a GPU: `python -m benchmarks.gpu`.

It needs numpy, scipy, PyAV, pydantic and nvcc there, neither numba nor OpenCV; `benchmarks.frames` says what it is for.
"""
