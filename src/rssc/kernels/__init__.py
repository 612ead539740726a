"""Numba kernels: numbers and arrays in, numbers and arrays out. Nothing here knows the classes above it."""
