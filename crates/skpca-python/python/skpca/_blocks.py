"""Rows that are not in memory: streams of blocks, and arrays in files.

Blocks are written once to an unnamed temporary file, in 32 bits where those are exact, and read in passes; an array in
a file is read in place.
"""

import os
import tempfile

import numpy as np

from . import _core

# Number of rows of a stream that are sampled into memory, for steps that do not need all of them.
KEPT = 20_000


def stream(X):
    """Returns a stream for the core and its column names, or None if X is an ordinary table."""
    if isinstance(X, np.memmap):
        return in_place(X)
    blocks = iterator(X)
    return None if blocks is None else spooled(blocks)


def iterator(X):
    """Returns an iterator over the blocks of X, or None if X has none (a list is a list of rows)."""
    if hasattr(X, "to_batches") and hasattr(X, "schema") and not hasattr(X, "column_names"):  # pyarrow.dataset.Dataset
        return iter(X.to_batches())
    if hasattr(X, "read_next_batch"):  # pyarrow.RecordBatchReader
        return iter(X)
    if hasattr(X, "collect_schema") and hasattr(X, "sink_parquet"):  # polars.LazyFrame
        if not hasattr(X, "collect_batches"):
            raise TypeError("X: this version of polars gives no batches of a LazyFrame; expected 1.34 or later")
        return iter(X.collect_batches(maintain_order=True))
    if isinstance(X, type) or hasattr(X, "shape") or hasattr(X, "__array__") or hasattr(X, "__len__"):
        return None
    if callable(X):
        return iter(X())
    return iter(X) if hasattr(X, "__iter__") else None


def spooled(blocks):
    """Writes blocks to a private temporary file."""
    spool = names = columns = None
    for block in blocks:
        found, values = numbers(block)
        if values.ndim != 2:
            raise ValueError(f"X: expected blocks of rows and columns, found an array of {values.ndim} dimension(s)")
        if spool is None:
            names, columns = found, values.shape[1]
            spool = _core.Spool(tempfile.gettempdir(), columns)
        elif names is not None and found is not None and found != names:
            if sorted(found) != sorted(names):
                missing, unexpected = sorted(set(names) - set(found)), sorted(set(found) - set(names))
                raise ValueError(f"X: a block has other columns: missing {missing}, unexpected {unexpected}")
            values = values[:, [found.index(name) for name in names]]
        elif values.shape[1] != columns:
            raise ValueError(f"X: a block has {values.shape[1]} columns, expected {columns}")
        spool.add(np.ascontiguousarray(values, dtype=np.float64))
    if spool is None:
        raise ValueError("X: expected blocks of rows, found none")
    return spool.finish(), names


def numbers(block):
    """Returns the column names of a block, if it has any, and its values."""
    if hasattr(block, "schema") and hasattr(block, "to_pydict"):  # a batch or table of pyarrow
        columns = [np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64) for column in block.columns]
        names, values = list(block.schema.names), np.column_stack(columns) if columns else np.empty((block.num_rows, 0))
    else:
        names = list(block.columns) if hasattr(block, "columns") else None
        values = block.to_numpy() if hasattr(block, "to_numpy") else np.asarray(block)
    if names is not None and not all(isinstance(name, str) for name in names):
        names = None
    if np.iscomplexobj(values):
        raise ValueError("X: expected real numbers, found complex ones")
    return names, values


def in_place(X):
    """Returns a stream over a memory-mapped array that does not fit in memory twice and that the core can read."""
    plain = X.ndim == 2 and X.flags.c_contiguous and X.dtype in (np.dtype("<f4"), np.dtype("<f8"))
    if not plain or X.filename is None or not X.size or _core.fits_memory(*X.shape):
        return None
    root = X
    while isinstance(root.base, np.memmap):
        root = root.base
    start = root.offset + X.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    X.flush()
    return _core.Stream.open(os.fspath(X.filename), start, *X.shape, X.dtype.itemsize == 4), None
