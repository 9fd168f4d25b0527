#!/usr/bin/env python3
"""Writes the data files of this directory with the stock engine.

    pip install pylance==14.0.2 pyarrow numpy
    python generate.py .

NAME.VERSION.lance is one data file; NAME.arrow holds the values that it must
read as, in the same columns. The columns' names say what is in them. The seeds
are fixed, so only a new engine version changes what is written.
"""
import decimal
import glob
import os
import random
import shutil
import sys

import lance
import numpy as np
import pyarrow as pa

rng = np.random.default_rng(1)
random.seed(1)
D = decimal.Decimal


def words(n, low, high, distinct=None):
    alphabet = "abcdefghijklmnopqrstuvwxyzäö "

    def word():
        return "".join(random.choice(alphabet) for _ in range(random.randint(low, high)))

    if distinct:
        pool = [word() for _ in range(distinct)]
        return [random.choice(pool) for _ in range(n)]
    return [word() for _ in range(n)]


def sentences(n, low, high):
    pool = words(300, 2, 9)
    return [" ".join(random.choice(pool) for _ in range(random.randint(low, high))) for _ in range(n)]


def vectors(n, dim, dtype="float32", null_items=0.0):
    values = rng.normal(size=n * dim).astype(dtype)
    mask = rng.random(n * dim) < null_items if null_items else None
    return pa.FixedSizeListArray.from_arrays(pa.array(values, mask=mask), dim)


def with_nulls(a, share=0.2):
    mask = rng.random(len(a)) < share
    return a.take(pa.array([None if m else i for i, m in enumerate(mask)], type=pa.int32()))


def integers(dtype, n, how):
    info = np.iinfo(dtype)
    if how == "small":
        return rng.integers(0, 100, n).astype(dtype)
    if how == "full":
        return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    if how == "runs":
        return np.repeat(rng.integers(0, 50, n // 20 + 1).astype(dtype), 20)[:n]
    if how == "few":
        return rng.integers(info.min, info.max, 10, dtype=dtype, endpoint=True)[rng.integers(0, 10, n)]
    raise ValueError(how)


def flat(n, nulls=True):
    """All types whose values are smaller than 256 bytes."""
    columns = {}
    for dtype in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]:
        for how in ["small", "full", "runs", "few"]:
            columns[f"{dtype}_{how}"] = pa.array(integers(np.dtype(dtype), n, how))
    columns |= {
        "float16": pa.array(rng.normal(size=n).astype("float16")),
        "float32": pa.array(rng.normal(size=n).astype("float32")),
        "float32_odd": pa.array(np.array([np.nan, np.inf, -0.0, 1.5], dtype="float32")[rng.integers(0, 4, n)]),
        "float64": pa.array(rng.normal(size=n)),
        "float64_few": pa.array(np.array([1.5, 2.5, -3])[rng.integers(0, 3, n)]),
        "bool": pa.array(rng.integers(0, 2, n).astype(bool)),
        "date32": pa.array(rng.integers(0, 20000, n).astype("int32"), type=pa.date32()),
        "date64": pa.array(rng.integers(0, 20000, n) * 86400000, type=pa.date64()),
        "time32_s": pa.array(rng.integers(0, 86400, n).astype("int32"), type=pa.time32("s")),
        "time32_ms": pa.array(rng.integers(0, 86400000, n).astype("int32"), type=pa.time32("ms")),
        "time64_us": pa.array(rng.integers(0, 86400000000, n), type=pa.time64("us")),
        "time64_ns": pa.array(rng.integers(0, 86400000000000, n), type=pa.time64("ns")),
        "timestamp_s": pa.array(rng.integers(0, 2**31, n), type=pa.timestamp("s")),
        "timestamp_us_utc": pa.array(rng.integers(2**50, 2**51, n), type=pa.timestamp("us", "UTC")),
        "timestamp_ns": pa.array(rng.integers(0, 2**60, n), type=pa.timestamp("ns")),
        "duration_ms": pa.array(rng.integers(-(2**40), 2**40, n), type=pa.duration("ms")),
        "decimal128": pa.array([D(int(x)) / 100 for x in rng.integers(-(10**12), 10**12, n)], type=pa.decimal128(20, 2)),
        "decimal128_few": pa.array([D(int(x)) for x in rng.integers(0, 5, n)], type=pa.decimal128(38, 0)),
        "decimal256": pa.array([D(int(x)) * 10**20 for x in rng.integers(-(10**12), 10**12, n)], type=pa.decimal256(50, 0)),
        "fixed_binary3": pa.array([rng.bytes(3) for _ in range(n)], type=pa.binary(3)),
        "fixed_binary16_few": pa.array([b"%016d" % x for x in rng.integers(0, 7, n)], type=pa.binary(16)),
        "string_short": pa.array(words(n, 0, 12)),
        "string_few": pa.array(words(n, 3, 20, 30)),
        "string_text": pa.array(sentences(n, 3, 12)),
        "large_string_text": pa.array(sentences(n, 3, 12), type=pa.large_string()),
        "large_string_few": pa.array(words(n, 3, 20, 30), type=pa.large_string()),
        "binary": pa.array([rng.bytes(int(k)) for k in rng.integers(0, 30, n)], type=pa.binary()),
        "large_binary": pa.array([rng.bytes(int(k)) for k in rng.integers(0, 30, n)], type=pa.large_binary()),
        "vector4": vectors(n, 4),
        "vector16_half": vectors(n, 16, "float16"),
        "vector8_int8": pa.FixedSizeListArray.from_arrays(pa.array(rng.integers(-128, 128, n * 8).astype("int8")), 8),
        "vector5_null_items": vectors(n, 5, null_items=0.1),
        "vector_of_vectors": pa.FixedSizeListArray.from_arrays(vectors(n * 2, 3), 2),
    }
    if nulls:
        for name in list(columns):
            columns[name + "_null"] = with_nulls(columns[name])
    return columns


def constant(n):
    """Columns that hold one value, or none."""
    columns = {
        "int64": pa.array(np.full(n, 42)),
        "int32": pa.array(np.full(n, -3, dtype="int32")),
        "float16": pa.array(np.full(n, 1.5, dtype="float16")),
        "true": pa.array([True] * n),
        "false": pa.array([False] * n),
        "decimal256": pa.array([D(5)] * n, type=pa.decimal256(50, 0)),
        "fixed_binary40": pa.array([b"z" * 40] * n, type=pa.binary(40)),
        "string": pa.array(["hello"] * n),
        "large_string": pa.array(["hello there"] * n, type=pa.large_string()),
        "string_empty": pa.array([""] * n),
        "vector64": pa.FixedSizeListArray.from_arrays(pa.array(np.ones(n * 64, dtype="float32")), 64),
    }
    for name in list(columns):
        columns[name + "_null"] = with_nulls(columns[name])
    columns["null"] = pa.nulls(n)
    for t in [pa.int64(), pa.bool_(), pa.string(), pa.large_binary(), pa.list_(pa.float32(), 4), pa.list_(pa.string())]:
        columns[f"all_null_{len(columns)}"] = pa.nulls(n, t)
    return columns


def wide(n):
    """Values of 256 bytes and more."""
    columns = {
        "fixed_binary300": pa.array([rng.bytes(300) for _ in range(n)], type=pa.binary(300)),
        "string_300": pa.array(sentences(n, 30, 80)),
        "binary_300": pa.array([rng.bytes(int(k)) for k in rng.integers(200, 400, n)], type=pa.binary()),
        "large_binary_300": pa.array([rng.bytes(int(k)) for k in rng.integers(200, 400, n)], type=pa.large_binary()),
        "string_40k": pa.array([" ".join(sentences(30, 100, 250)) if i % 16 == 3 else "short" for i in range(n)]),
        "large_string_40k": pa.array(
            [" ".join(sentences(30, 100, 250)) if i % 16 == 3 else "" for i in range(n)], type=pa.large_string()
        ),
        "vector128": vectors(n, 128),
        "vector130_null_items": vectors(n, 130, null_items=0.1),
        "vector256_int8": pa.FixedSizeListArray.from_arrays(pa.array(rng.integers(-128, 128, n * 256).astype("int8")), 256),
    }
    for name in list(columns):
        columns[name + "_null"] = with_nulls(columns[name])
    return columns


def nested(n):
    """Lists and structs, null and empty at every level."""

    def lists(items, rows=n, nulls=0.1, longest=4):
        lengths, mask = rng.integers(0, longest + 1, rows), rng.random(rows) < nulls
        lengths[mask] = 0
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
        return pa.ListArray.from_arrays(pa.array(offsets), items(int(offsets[-1])), mask=pa.array(mask))

    def numbers(k):
        return pa.array(rng.integers(0, 1000, k).astype("int32"), mask=rng.random(k) < 0.1)

    def structs(k, nulls=0.15):
        fields = [pa.array(rng.integers(0, 9, k), mask=rng.random(k) < 0.2), pa.array(words(k, 0, 9))]
        return pa.StructArray.from_arrays(fields, ["x", "y"], mask=pa.array(rng.random(k) < nulls))

    inner = structs(n)
    return {
        "list_int32": lists(numbers),
        "list_int32_no_null": lists(lambda k: pa.array(rng.integers(0, 1000, k).astype("int32")), nulls=0),
        "list_string": lists(lambda k: pa.array(words(k, 0, 8))),
        "list_string_few": lists(lambda k: pa.array(words(k, 3, 8, 10))),
        "list_string_long": lists(lambda k: pa.array(sentences(k, 40, 60)), longest=1),
        "list_bool": lists(lambda k: pa.array(rng.integers(0, 2, k).astype(bool))),
        "list_vector": lists(lambda k: vectors(k, 64), longest=1),
        "list_long": lists(numbers, longest=40),
        "list_null_items": lists(lambda k: pa.nulls(k, pa.int32())),
        "list_empty": lists(lambda k: pa.array([], pa.int32()), nulls=0.2, longest=0),
        "list_constant": lists(lambda k: pa.array(np.full(k, 7, dtype="int32"))),
        "large_list": lists(numbers).cast(pa.large_list(pa.int32())),
        "struct": structs(n, nulls=0),
        "struct_null": inner,
        "struct_of_struct": pa.StructArray.from_arrays([inner, numbers(n)], ["s", "n"], mask=pa.array(rng.random(n) < 0.1)),
        "struct_of_list": pa.StructArray.from_arrays(
            [numbers(n), lists(lambda k: pa.array(words(k, 0, 8)))], ["n", "l"], mask=pa.array(rng.random(n) < 0.15)
        ),
        "list_struct": lists(structs),
        "list_list": lists(lambda k: lists(numbers, rows=k)),
        "list_struct_list": lists(
            lambda k: pa.StructArray.from_arrays([numbers(k), lists(numbers, rows=k, longest=2)], ["n", "l"])
        ),
    }


def compressed(n):
    """Compression that a field's metadata asks for."""
    columns, fields = {}, []
    arrays = {
        "int64": pa.array(rng.integers(0, 2**40, n) // 1000 * 1000),
        "float32": pa.array(np.cumsum(rng.normal(size=n)).astype("float32")),
        "float64": pa.array(np.cumsum(rng.normal(size=n))),
        "string": pa.array(sentences(n, 3, 12)),
    }
    for name, a in arrays.items():
        for scheme in ["lz4", "zstd"]:
            md = {"lance-encoding:compression": scheme}
            if name.startswith("float"):
                md["lance-encoding:bss"] = "on"
            columns[f"{name}_{scheme}"] = a
            fields.append(pa.field(f"{name}_{scheme}", a.type, metadata=md))
    return columns, pa.schema(fields)


def write(out, name, columns, schema=None):
    t = pa.table(columns)
    with pa.OSFile(f"{out}/{name}.arrow", "wb") as sink:
        with pa.ipc.new_file(sink, t.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as w:
            w.write_table(t)
    if schema:
        t = t.cast(schema)
    for version in ["2.1", "2.2"]:
        shutil.rmtree(f"{out}/tmp", ignore_errors=True)
        lance.write_dataset(t, f"{out}/tmp", data_storage_version=version)
        (path,) = glob.glob(f"{out}/tmp/data/*.lance")
        shutil.move(path, f"{out}/{name}.{version}.lance")
    shutil.rmtree(f"{out}/tmp")


def main(out):
    write(out, "flat_10", flat(10))
    write(out, "flat_150", flat(150))
    write(out, "flat_1100", flat(1100, nulls=False))
    write(out, "constant_10", constant(10))
    write(out, "constant_400", constant(400))
    write(out, "wide_10", wide(10))
    write(out, "wide_40", wide(40))
    write(out, "nested_10", nested(10))
    write(out, "nested_700", nested(700))
    write(out, "compressed_1500", *compressed(1500))
    # Enough rows for levels and indices of many blocks.
    n = 30000
    write(out, "long_30000", {
        "int16_null": pa.array((np.arange(n) % 100).astype("int16"), mask=rng.random(n) < 0.01),
        "bool_runs": pa.array(np.repeat(rng.integers(0, 2, n // 500), 500).astype(bool)),
        "string_few_null": with_nulls(pa.array(words(n, 3, 12, 200))),
        "list_few": pa.array([[int(i) % 3] * (i % 3) if i % 7 else None for i in range(n)], type=pa.list_(pa.int8())),
    })
    # Rows that do not fit into a chunk, and chunks without values.
    write(out, "list_odd_4", {"list_one_long": pa.array([list(range(20000)), [1], None, []], pa.list_(pa.int64()))})
    write(out, "list_empty_50000", {"list_mostly_empty": pa.array([[1, 2, 3]] + [[]] * 49998 + [[4]], pa.list_(pa.int64()))})


if __name__ == "__main__":
    main(sys.argv[1])
