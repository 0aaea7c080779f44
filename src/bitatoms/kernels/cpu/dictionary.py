"""The atoms as coding needs them: tables derived from them, and what rows share with all of them.

The inner loop of coding is written with LLVM vectors. Plain numba keeps the byte counters of this loop in memory. With
vectors of fixed width they stay in registers, which makes coding about twice as fast. LLVM lowers the vectors to the
instruction set of the host (NEON, AVX2, AVX-512).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..jit import inline, kernel, popcount
from ..structs import MAX_PRICE
from ..views import view
from .words import NONE, fill, first_one, weight

_BYTE, _INDEX = ir.IntType(8), ir.IntType(64)
_LOW_BYTE = 0 if sys.byteorder == "little" else 7
_MAX_BYTES = 31  # 31 bytes have at most 248 ones, which fit into a byte counter
_MAX_TERMS = 65535 // MAX_PRICE  # number of prices whose sum fits into 16 bits


def _splat(builder: Any, value: Any, width: int) -> Any:
    """Return a vector with the value in every lane."""
    vector = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
    vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width))


def _bit_counter(module: Any, vector: Any) -> Any:
    """Return LLVM's population count for vectors of bytes, declared by name (llvmlite has none for vectors)."""
    name = f"llvm.ctpop.v{vector.count}i8"
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(vector, [vector]), name)


@intrinsic
def _byte_of(typing: Any, words: Any, j: Any, b: Any) -> Any:
    """Return byte b of row j, loaded directly: shifting it out of its word is slower."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, n_words = builder.extract_value(arguments[0], 0), builder.extract_value(arguments[0], [1, 1])
        stride = builder.mul(n_words, ir.Constant(_INDEX, 8))
        column = builder.xor(arguments[2], ir.Constant(_INDEX, _LOW_BYTE))
        offset = builder.add(builder.mul(arguments[1], stride), column)
        byte = builder.load(builder.gep(builder.bitcast(data, _BYTE.as_pointer()), [offset]))
        return builder.zext(byte, _INDEX)

    return types.int64(words, types.intp, types.intp), codegen


def _lane_adder(width: int, counts: bool) -> Any:
    """Return the intrinsic that adds factor * (a sum over listed entries) to ``width`` gains, starting at ``lane``.

    With ``counts``, each entry is a byte, and its term is the number of ones that it shares with each atom. Otherwise
    an entry refers to a row of numbers, which is the term.
    """
    number_of = 8 if counts else 16  # bits of a counter

    @intrinsic
    def add_lanes(
        typing: Any, slices: Any, lane: Any, listed: Any, start: Any, stop: Any, factor: Any, gains: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            table, entries, totals = (builder.extract_value(arguments[i], 0) for i in (0, 2, 6))
            lane, start, stop, factor = (arguments[i] for i in (1, 3, 4, 5))
            numbers = ir.VectorType(_BYTE, width)
            counters = ir.VectorType(ir.IntType(number_of), width)
            zeros = ir.Constant(counters, [0] * width)
            first = builder.gep(table, [lane])
            entry = builder.basic_block
            loop, done = builder.append_basic_block("bytes"), builder.append_basic_block("added")
            builder.cbranch(builder.icmp_signed("<", start, stop), loop, done)

            builder.position_at_end(loop)
            i, so_far = builder.phi(_INDEX), builder.phi(counters)
            listed_at = builder.gep(entries, [i])
            offset = builder.lshr(builder.load(listed_at), ir.Constant(_INDEX, 8))
            row = builder.load(builder.bitcast(builder.gep(first, [offset]), numbers.as_pointer()), align=1)
            if counts:
                # A byte loaded separately is broadcast to a vector in one instruction.
                low_byte = builder.gep(builder.bitcast(listed_at, _BYTE.as_pointer()), [ir.Constant(_INDEX, _LOW_BYTE)])
                shared = builder.and_(row, _splat(builder, builder.load(low_byte), width))
                term = builder.call(_bit_counter(builder.module, numbers), [shared])
            else:
                term = builder.zext(row, counters)
            counted = builder.add(so_far, term)
            following = builder.add(i, ir.Constant(_INDEX, 1))
            i.add_incoming(start, entry)
            i.add_incoming(following, loop)
            so_far.add_incoming(zeros, entry)
            so_far.add_incoming(counted, loop)
            builder.cbranch(builder.icmp_signed("<", following, stop), loop, done)

            builder.position_at_end(done)
            count = builder.phi(counters)
            count.add_incoming(zeros, entry)
            count.add_incoming(counted, loop)
            number = context.get_value_type(signature.args[6].dtype)
            wide = ir.VectorType(number, width)
            target = builder.bitcast(builder.gep(totals, [lane]), wide.as_pointer())
            scale = builder.trunc(factor, number) if number.width < factor.type.width else factor
            added = builder.mul(builder.zext(count, wide), _splat(builder, scale, width))
            builder.store(builder.add(builder.load(target, align=1), added), target, align=1)
            return context.get_dummy_value()

        index = types.intp
        return types.void(slices, index, listed, index, index, types.int32, gains), codegen

    return add_lanes


_count_128, _count_64, _count_32, _count_16 = (_lane_adder(width, True) for width in (128, 64, 32, 16))
_sum_64, _sum_32, _sum_16 = (_lane_adder(width, False) for width in (64, 32, 16))


@inline
def add_overlaps(words, j, factor, slices, listed, gains):
    """gains[l] += factor * (number of ones that row j of the words and atom l share).

    ``listed`` is a work array for the non-zero bytes of the row: the offset of the slices of each byte, and its value
    in the low 8 bits.
    """
    count = 0
    lanes = slices.shape[1]
    for b in range(slices.shape[0]):
        value = _byte_of(words, j, b)
        listed[count] = (b * lanes << 8) | value  # overwritten if the byte is zero
        count += np.intp(value != 0)
    for start in range(0, count, _MAX_BYTES):
        stop = min(count, start + _MAX_BYTES)
        lane = 0
        while lane + 128 <= gains.shape[0]:
            _count_128(slices, lane, listed, start, stop, factor, gains)
            lane += 128
        left = gains.shape[0] - lane
        if left & 64:
            _count_64(slices, lane, listed, start, stop, factor, gains)
            lane += 64
        if left & 32:
            _count_32(slices, lane, listed, start, stop, factor, gains)
            lane += 32
        if left & 16:
            _count_16(slices, lane, listed, start, stop, factor, gains)


@inline
def add_prices(words, j, factor, atoms, prices, listed, gains):
    """gains[l] += factor * (sum of the prices of the ones that row j of the words and atom l share).

    The atoms that have a one are listed, or ``atoms.slices`` has a row of prices for it.
    """
    if atoms.column_starts.shape[0] > 0:
        for w in range(words.shape[1]):
            word = words[j, w]
            while word != NONE:
                i, word = first_one(word, w)
                for entry in range(atoms.column_starts[i], atoms.column_starts[i + 1]):
                    gains[atoms.column_atoms[entry]] += factor * prices[i]
    else:
        _add_rows(words, j, factor, atoms.slices, listed, gains)


@inline
def _add_rows(words, j, factor, prices, listed, gains):
    """gains[l] += factor * (sum of prices[i, l] over the ones i in row j of the words).

    ``listed`` is a work array for the offsets of the rows of these ones, in the format of ``add_overlaps``.
    """
    count = 0
    lanes = prices.shape[1]
    for w in range(words.shape[1]):
        word = words[j, w]
        while word != NONE:
            i, word = first_one(word, w)
            listed[count] = (i * lanes) << 8
            count += 1
    for start in range(0, count, _MAX_TERMS):
        stop = min(count, start + _MAX_TERMS)
        lane = 0
        while lane + 64 <= gains.shape[0]:
            _sum_64(prices, lane, listed, start, stop, factor, gains)
            lane += 64
        left = gains.shape[0] - lane
        if left & 32:
            _sum_32(prices, lane, listed, start, stop, factor, gains)
            lane += 32
        if left & 16:
            _sum_16(prices, lane, listed, start, stop, factor, gains)


@kernel
def slice_atoms(atoms, weights, slices):
    """weights[l] = number of ones in atom l; slices[b, l] = byte b of atom l."""
    atoms, weights, slices = view((atoms, weights, slices))
    for k in range(atoms.shape[0]):
        weights[k] = weight(atoms, k)
        for b in range(slices.shape[0]):
            slices[b, k] = np.uint8(atoms[k, b >> 3] >> np.uint64((b & 7) << 3))


@kernel
def overlap_atoms(atoms, changed, factor, overlaps):
    """overlaps[k, l] = factor * (number of ones that atoms k and l share), where k or l has changed."""
    atoms, changed, overlaps = view((atoms, changed, overlaps))
    for k in range(atoms.shape[0]):
        for i in range(k + 1):
            if changed[k] or changed[i]:
                shared = 0
                for w in range(atoms.shape[1]):
                    shared += np.intp(popcount(atoms[k, w] & atoms[i, w]))
                overlaps[k, i] = factor * shared
                overlaps[i, k] = factor * shared


@kernel
def price_atoms(atoms, bits, factor, listed, priced):
    """Compute the tables of the atoms for coding with these prices of errors.

    slices[i, l] = price of bit i if atom l has it, else 0, unless atoms are listed by column;
    weights[l] = sum of these for atom l;
    overlaps[k, l] = factor * (sum of the prices of the ones that atoms k and l share).
    """
    atoms, bits, listed, priced = view((atoms, bits, listed, priced))
    for i in range(priced.slices.shape[0]):
        price, shift = np.uint8(bits[i]), np.uint8(i & 7)
        for k in range(priced.slices.shape[1]):
            priced.slices[i, k] = price * ((atoms.slices[i >> 3, k] >> shift) & np.uint8(1))
    for k in range(atoms.words.shape[0]):
        overlaps = priced.overlaps[k]
        fill(overlaps, 0)
        add_prices(atoms.words, k, factor, priced, bits, listed, overlaps)
        priced.weights[k] = overlaps[k] // factor
