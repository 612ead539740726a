"""Vectors and matrices of three as tuples, which stay in registers."""

from rssc.kernels.jit import inlined


@inlined
def vector_of(values, n, first):
    """Three values of row n."""
    return values[n, first], values[n, first + 1], values[n, first + 2]


@inlined
def matrix_of(values, n, first):
    """Rows first .. first + 2 of values[n], three columns."""
    return (
        (values[n, first, 0], values[n, first, 1], values[n, first, 2]),
        (values[n, first + 1, 0], values[n, first + 1, 1], values[n, first + 1, 2]),
        (values[n, first + 2, 0], values[n, first + 2, 1], values[n, first + 2, 2]),
    )


@inlined
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inlined
def subtract(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inlined
def scale(factor, a):
    return factor * a[0], factor * a[1], factor * a[2]


@inlined
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined
def times(m, v):
    """Matrix times column."""
    return dot(m[0], v), dot(m[1], v), dot(m[2], v)


@inlined
def row_times(v, m):
    """Row times matrix."""
    return (
        v[0] * m[0][0] + v[1] * m[1][0] + v[2] * m[2][0],
        v[0] * m[0][1] + v[1] * m[1][1] + v[2] * m[2][1],
        v[0] * m[0][2] + v[1] * m[1][2] + v[2] * m[2][2],
    )


@inlined
def matrix_times(a, b):
    """Matrix times matrix."""
    return row_times(a[0], b), row_times(a[1], b), row_times(a[2], b)
