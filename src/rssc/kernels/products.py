"""Products of tall matrices, in vector registers.

    C += A^T B = sum over the rows of  a^T b          with a row of A and the same row of B

A block of C stays in registers while rows stream past: a row costs one multiply-add per vector of the block. BLAS does
the same, but is made for large matrices: for a few dozen columns it spends much of its time on packing them, and what
scipy brings along may not know a new processor, and then use half of its vectors. Loops that numba compiles keep no
block in registers. So blocks are written in LLVM's vector types; a processor with shorter ones takes several.
"""

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from rssc.kernels.jit import part

_VECTOR = 8 if llvm.get_host_cpu_features().get("avx512f") else 4
"""Numbers of one instruction; a block of _VECTOR rows by three vectors then fills most of the registers."""
UNIT = 8
"""Columns come in multiples of it."""
WIDTH = 24
"""Columns of a tile."""

_NUMBER, _INDEX = ir.DoubleType(), ir.IntType(64)
_VECTOR_TYPE = ir.VectorType(_NUMBER, _VECTOR)


def _block_adder(vectors: int) -> Any:
    """An intrinsic for blocks of _VECTOR rows and so many vectors.

    It does out[r : r + rows, c : c + columns] += a[begin : end, r : r + rows].T @ b[begin : end, c : c + columns], for
    contiguous arrays and begin < end.
    """

    @intrinsic
    def add_block(typing_context: Any, a: Any, r: Any, b: Any, c: Any, begin: Any, end: Any, out: Any) -> Any:
        signature = types.void(a, types.int64, b, types.int64, types.int64, types.int64, out)
        return signature, generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, r, b, c, begin, end, out = arguments
        array_a, array_b, array_out = (
            context.make_array(signature.args[i])(context, builder, value) for i, value in ((0, a), (2, b), (6, out))
        )
        stride_a, stride_b, stride_out = (
            cgutils.unpack_tuple(builder, array.shape)[1] for array in (array_a, array_b, array_out)
        )

        def at(array: Any, row: Any, stride: Any, column: Any) -> Any:
            return builder.gep(array.data, [builder.add(builder.mul(row, stride), column)])

        def vectors_at(place: Any) -> list[Any]:
            return [
                builder.bitcast(builder.gep(place, [_INDEX(_VECTOR * v)]), _VECTOR_TYPE.as_pointer())
                for v in range(vectors)
            ]

        fma = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR_TYPE, [_VECTOR_TYPE] * 3), f"llvm.fma.v{_VECTOR}f64"
        )
        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(_INDEX)
        sums = [[builder.phi(_VECTOR_TYPE) for _ in range(vectors)] for _ in range(_VECTOR)]
        row_a, row_b = at(array_a, k, stride_a, r), at(array_b, k, stride_b, c)
        of_b = [builder.load(place, align=8) for place in vectors_at(row_b)]
        added: list[list[Any]] = []
        for i, row in enumerate(sums):
            factor = _broadcast(builder, builder.load(builder.gep(row_a, [_INDEX(i)])))
            added.append([builder.call(fma, [factor, x, y]) for x, y in zip(of_b, row, strict=True)])
        following = builder.add(k, _INDEX(1))
        builder.cbranch(builder.icmp_signed("<", following, end), loop, after)
        k.add_incoming(begin, before)
        k.add_incoming(following, loop)
        zero = ir.Constant(_VECTOR_TYPE, [0.0] * _VECTOR)
        for row, row_added in zip(sums, added, strict=True):
            for y, y_added in zip(row, row_added, strict=True):
                y.add_incoming(zero, before)
                y.add_incoming(y_added, loop)
        builder.position_at_end(after)
        for i, row_added in enumerate(added):
            places = vectors_at(at(array_out, builder.add(r, _INDEX(i)), stride_out, c))
            for place, y in zip(places, row_added, strict=True):
                builder.store(builder.fadd(builder.load(place, align=8), y), place, align=8)
        return context.get_dummy_value()

    return add_block


def _broadcast(builder: Any, number: Any) -> Any:
    """A vector with the number in every place."""
    undefined, first = ir.Constant(_VECTOR_TYPE, ir.Undefined), ir.IntType(32)(0)
    places = ir.Constant(ir.VectorType(ir.IntType(32), _VECTOR), [0] * _VECTOR)
    return builder.shuffle_vector(builder.insert_element(undefined, number, first), undefined, places)


def _plain_block_adder(vectors: int) -> Any:
    """`_block_adder` as numpy says it, for Python that runs without numba."""

    def add_block(a: Any, r: int, b: Any, c: int, begin: int, end: int, out: Any) -> None:
        rows, columns = slice(r, r + _VECTOR), slice(c, c + vectors * _VECTOR)
        out[rows, columns] += a[begin:end, rows].T @ b[begin:end, columns]

    return add_block


_adder = _plain_block_adder if config.DISABLE_JIT else _block_adder
_add_wide_block, _add_block = _adder(3), _adder(UNIT // _VECTOR)
_WIDE = 3 * _VECTOR


@part
def add_tile(a, b, begin, end, out):
    """out += a[begin:end].T @ b[begin:end], for begin < end and WIDTH columns of a and of b."""
    for r in range(0, WIDTH, _VECTOR):
        for c in range(0, WIDTH, _WIDE):
            _add_wide_block(a, r, b, c, begin, end, out)


@part
def add_product(a, b, begin, end, out):
    """out += a[begin:end].T @ b[begin:end], for begin < end and columns in multiples of UNIT."""
    for r in range(0, a.shape[1], _VECTOR):
        for c in range(0, b.shape[1], UNIT):
            _add_block(a, r, b, c, begin, end, out)


@part
def add_square(a, end, out):
    """out += a[:end].T @ a[:end] where that is not below the diagonal, for end > 0 and columns in multiples of UNIT."""
    for r in range(0, a.shape[1], _VECTOR):
        for c in range(r // UNIT * UNIT, a.shape[1], UNIT):
            _add_block(a, r, a, c, 0, end, out)
