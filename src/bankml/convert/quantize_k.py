"""float32 to Q4_K, Q5_K and Q6_K, byte for byte as ggml b11192 writes them without an importance matrix.

A block of 256 weights is made of groups, each with its own scale, found by trying several and keeping the one with
the least error. Groups are columns here, [weights of a group, groups], so that each step runs over all groups at once
while every sum keeps ggml's order, from the first weight to the last.
"""

import numpy as np
import numpy.typing as npt

from bankml.convert.halves import Bytes, Floats, to_f16

Codes = npt.NDArray[np.int32]

GROUP_MAX_EPS = np.float32(1e-15)
ROUNDING = np.float32(12582912)  # 1.5 * 2**23: added to a float, it leaves the nearest integer in the low bits


def q4_k(weights: Floats) -> Bytes:
    scales, codes = _with_minimums(weights, 15, np.float32(-1), 20)
    pairs = codes.reshape(len(codes), 4, 2, 32)
    nibbles = pairs[:, :, 0] | pairs[:, :, 1] << 4
    return np.concatenate([scales, nibbles.reshape(len(codes), -1).astype(np.uint8)], axis=1).reshape(-1)


def q5_k(weights: Floats) -> Bytes:
    scales, codes = _with_minimums(weights, 31, np.float32(-0.5), 15)
    pairs = codes.reshape(len(codes), 4, 2, 32)
    nibbles = pairs[:, :, 0] & 15 | (pairs[:, :, 1] & 15) << 4
    fifth = np.packbits((codes.reshape(len(codes), 8, 32) >> 4).astype(np.uint8), axis=1, bitorder="little")
    rows = [scales, fifth.reshape(len(codes), 32), nibbles.reshape(len(codes), -1).astype(np.uint8)]
    return np.concatenate(rows, axis=1).reshape(-1)


def q6_k(weights: Floats) -> Bytes:
    blocks = weights.reshape(-1, 256)
    group_scales, found = _symmetric_groups(np.ascontiguousarray(blocks.reshape(-1, 16).T), 32)
    scales, codes = group_scales.reshape(-1, 16), found.T.reshape(-1, 16, 16).copy()
    magnitudes = np.abs(scales)
    largest = np.take_along_axis(scales, magnitudes.argmax(axis=1)[:, None], axis=1)
    inverse = np.float32(-128) / largest
    halves = to_f16(np.float32(1) / inverse[:, 0])
    quantized = np.minimum(127, _nearest(inverse * scales)).astype(np.int8)
    d = halves.view(np.float16).astype(np.float32)[:, None] * quantized.astype(np.float32)
    again = np.clip(_nearest(blocks.reshape(-1, 16, 16) / d[..., None]), -32, 31) + 32
    halved = np.where(d[..., None] != 0, again, codes).reshape(-1, 2, 4, 32)
    low, high = halved & 15, halved >> 4
    rows = [
        (low[:, :, :2] | low[:, :, 2:] << 4).reshape(-1, 128).astype(np.uint8),
        (high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6).reshape(-1, 64).astype(np.uint8),
        quantized.view(np.uint8),
        halves[:, None].astype("<u2").view(np.uint8),
    ]
    written = np.concatenate(rows, axis=1)
    written[magnitudes.max(axis=1) < GROUP_MAX_EPS] = 0
    return written.reshape(-1)


def _nearest(values: Floats) -> Codes:
    """ggml's nearest_int, its wrap beyond 2**22 included."""
    return ((values + ROUNDING).view(np.int32) & 0x7FFFFF) - 0x400000


def _sum(terms: Floats) -> Floats:
    """Down the columns, from first to last."""
    total: Floats = terms[0].copy()
    for row in terms[1:]:
        total += row
    return total


def _symmetric_groups(x: Floats, half: int) -> tuple[Floats, Codes]:
    """make_qx_quants with the weights x * x: scales [groups] and codes [n, groups], 0 to 2 * half - 1."""
    at = np.abs(x).argmax(axis=0)
    extreme = np.take_along_axis(x, at[None], axis=0)[0]
    importance = x * x
    weighted = importance * x
    scale = best = np.zeros(x.shape[1], np.float32)
    codes = np.zeros(x.shape, np.int32)
    for step in (0, *range(-9, 0), *range(1, 10)):
        inverse = -(np.float32(half) + np.float32(0.1) * np.float32(step)) / extreme
        tried = np.clip(_nearest(inverse * x), -half, half - 1)
        levels = tried.astype(np.float32)
        sum_lx, sum_l2 = _sum(weighted * levels), _sum(importance * levels * levels)
        ratio = sum_lx / sum_l2
        if step == 0:
            scale = np.where(sum_l2 != 0, ratio, np.float32(0))
            best, codes = scale * sum_lx, tried + half
            continue
        better = (sum_l2 > 0) & (sum_lx * sum_lx > best * sum_l2)
        scale = np.where(better, ratio, scale)
        best = np.where(better, ratio * sum_lx, best)
        codes = np.where(better, tried + half, codes)
    empty = np.abs(extreme) < GROUP_MAX_EPS
    return np.where(empty, np.float32(0), scale), np.where(empty, 0, codes)


def _groups_with_minimum(
    x: Floats, importance: Floats, top: int, first: np.float32, steps: int
) -> tuple[Floats, Floats, Codes]:
    """make_qkx2_quants: scales and minimums [groups], codes [n, groups], 0 to `top`."""
    sum_w, sum_x = _sum(importance), _sum(importance * x)
    minimum = np.minimum(x.min(axis=0), np.float32(0))
    span = x.max(axis=0) - minimum
    flat = x.max(axis=0) == minimum
    origin = minimum
    inverse = np.float32(top) / span
    scale = np.float32(1) / inverse
    codes = np.clip(_nearest(inverse * (x - origin)), 0, top)
    difference = scale * codes.astype(np.float32) + minimum - x
    best = _sum(importance * (difference * difference))
    for step in range(steps + 1):
        inverse = (first + np.float32(0.1) * np.float32(step) + np.float32(top)) / span
        # ggml measures from the minimum that is the best so far.
        tried = np.clip(_nearest(inverse * (x - minimum)), 0, top)
        levels = tried.astype(np.float32)
        weighted = importance * levels
        sum_l, sum_l2, sum_xl = _sum(weighted), _sum(weighted * levels), _sum(weighted * x)
        determinant = sum_w * sum_l2 - sum_l * sum_l
        new_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant
        new_minimum = (sum_l2 * sum_x - sum_l * sum_xl) / determinant
        positive = new_minimum > 0
        new_scale = np.where(positive, sum_xl / sum_l2, new_scale)
        new_minimum = np.where(positive, np.float32(0), new_minimum)
        difference = new_scale * levels + new_minimum - x
        error = _sum((importance * (difference * difference)).astype(np.float32, copy=False))
        better = (determinant > 0) & (error < best)
        codes, best = np.where(better, tried, codes), np.where(better, error, best)
        scale, minimum = np.where(better, new_scale, scale), np.where(better, new_minimum, minimum)
        # max - min of the next step is of the new minimum, too.
        span = x.max(axis=0) - minimum
    return np.where(flat, np.float32(0), scale), np.where(flat, -origin, -minimum), np.where(flat, 0, codes)


def _with_minimums(weights: Floats, top: int, first: np.float32, steps: int) -> tuple[Bytes, Codes]:
    """The scales' bytes [blocks, 16] and the codes [blocks, 256]."""
    groups = weights.reshape(-1, 32)
    x = np.ascontiguousarray(groups.T)
    average = np.sqrt(_sum(x * x) / np.float32(32)).astype(np.float32, copy=False)
    scale, minimum, found = _groups_with_minimum(x, average + np.abs(x), top, first, steps)
    scales, minimums = scale.reshape(-1, 8), minimum.reshape(-1, 8)
    # Adding 0 makes a largest of -0 the 0 that ggml begins with.
    largest = [one.max(axis=1, initial=np.float32(0))[:, None] + np.float32(0) for one in (scales, minimums)]
    inverses = [np.where(one > 0, np.float32(63) / one, np.float32(0)) for one in largest]
    ls, lm = (
        np.minimum(_nearest(inverse * one) & 255, 63) for inverse, one in zip(inverses, (scales, minimums), strict=True)
    )
    d, dmin = (to_f16(one / np.float32(63)) for one in largest)
    packed = np.concatenate(
        [
            ls[:, :4] | ls[:, 4:] >> 4 << 6,
            lm[:, :4] | lm[:, 4:] >> 4 << 6,
            ls[:, 4:] & 15 | (lm[:, 4:] & 15) << 4,
        ],
        axis=1,
    ).astype(np.uint8)
    steps_of = d.view(np.float16).astype(np.float32) * ls.astype(np.float32)
    offsets = dmin.view(np.float16).astype(np.float32) * lm.astype(np.float32)
    blocks = groups.reshape(-1, 8, 32)
    again = np.clip(_nearest((blocks + offsets[..., None]) / steps_of[..., None]), 0, top)
    codes = np.where(steps_of[..., None] != 0, again, found.T.reshape(-1, 8, 32)).reshape(-1, 256)
    return np.concatenate([d.view(np.uint8), dmin.view(np.uint8), packed], axis=1), codes
