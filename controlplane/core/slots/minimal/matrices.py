"""Arrays of slots by nodes: their types, and operations on their cells that are faster than numpy's general ones."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]


def cells(matrix: Truths) -> tuple[Numbers, Numbers]:
    """The rows and columns of the true cells, row by row, as :func:`numpy.nonzero` gives them."""
    rows, columns = np.divmod(np.flatnonzero(matrix), max(matrix.shape[1], 1))
    return rows, columns


def cells_by_column(matrix: Truths) -> tuple[Numbers, Numbers]:
    """The rows and columns of the true cells, column by column."""
    rows, columns = cells(matrix)
    order = stable_order(columns, matrix.shape[1])
    return rows[order], columns[order]


def stable_order(indexes: Numbers, width: int) -> Numbers:
    """The order that sorts indexes below ``width`` stably; numpy sorts short integers by radix."""
    return np.argsort(indexes.astype(np.min_scalar_type(width)), kind="stable")


def count_by_row(matrix: Truths) -> Numbers:
    """Number of true cells of each row."""
    return np.bincount(cells(matrix)[0], minlength=len(matrix))


def count_pairs(rows: Numbers, columns: Numbers, shape: tuple[int, int]) -> Numbers:
    """How often each row and column occur together, as a matrix of this shape."""
    height, width = shape
    return np.bincount(rows * width + columns, minlength=height * width).reshape(shape)


def packed(matrix: Truths) -> NDArray[np.uint64]:
    """Rows as words of 64 cells; the last word is padded with false cells."""
    packed_bytes = np.packbits(matrix, axis=1)
    words = np.zeros((len(matrix), -(-packed_bytes.shape[1] // 8) * 8), np.uint8)
    words[:, : packed_bytes.shape[1]] = packed_bytes
    return words.view(np.uint64)


def unpacked(words: NDArray[np.uint64], width: int) -> Truths:
    """The inverse of :func:`packed`."""
    return np.unpackbits(words.view(np.uint8), axis=1, count=width).view(np.bool_)
