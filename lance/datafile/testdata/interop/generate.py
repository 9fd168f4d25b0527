"""Writes tables of every supported type as Arrow IPC files and as data files of
the stock engine.

usage: generate.py DIR

For each case DIR gets NAME.arrow, and DIR/stock gets NAME.VERSION.lance for each
format version, written by pylance with its defaults, unless it cannot.
"""

import datetime
import decimal
import os
import random
import sys

import numpy as np
import pyarrow as pa
from lance.file import LanceFileWriter

out = sys.argv[1]
os.makedirs(os.path.join(out, "stock"), exist_ok=True)
rng = np.random.default_rng(7)
random.seed(7)


def nulls(values, share):
    if share == 0:
        return values
    mask = rng.random(len(values)) < share
    return [None if m else v for v, m in zip(values, mask)]


def words(n, vocabulary=4000):
    vocab = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(vocabulary)]
    return [" ".join(random.choices(vocab, k=random.randint(2, 12))) for _ in range(n)]


def scalar_columns(n):
    """Values by type for n rows, without nulls."""
    yield "int64_small", pa.int64(), rng.integers(0, 100_000, n).tolist()
    yield "int64_serial", pa.int64(), list(range(n))
    yield "int64_signed", pa.int64(), rng.integers(-1000, 1000, n).tolist()
    yield "int64_full", pa.int64(), rng.integers(-(2**63), 2**63 - 1, n).tolist()
    yield "int64_runs", pa.int64(), np.repeat(rng.integers(0, 2**60, n // 50 + 1), 50)[:n].tolist()
    yield "int64_few", pa.int64(), rng.choice(rng.integers(-(2**62), 2**62, 30), n).tolist()
    yield "int64_constant", pa.int64(), [-77] * n
    for bits in (8, 16, 32):
        yield f"int{bits}", getattr(pa, f"int{bits}")(), rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), n).tolist()
        yield f"uint{bits}", getattr(pa, f"uint{bits}")(), rng.integers(0, 2**bits, n).tolist()
        yield f"uint{bits}_small", getattr(pa, f"uint{bits}")(), rng.integers(0, 2 ** (bits // 2), n).tolist()
    yield "uint64", pa.uint64(), [int(x) for x in rng.integers(0, 2**64, n, dtype=np.uint64)]
    yield "float16", pa.float16(), [np.float16(x) for x in rng.normal(size=n)]
    yield "float32", pa.float32(), rng.normal(size=n).astype(np.float32).tolist()
    yield "float64", pa.float64(), rng.normal(size=n).tolist()
    yield "float64_few", pa.float64(), rng.choice([0.5, 1.25, 1e300], n).tolist()
    yield "bool", pa.bool_(), (rng.random(n) < 0.3).tolist()
    yield "bool_constant", pa.bool_(), [True] * n
    yield "utf8", pa.utf8(), words(n)
    yield "utf8_few", pa.utf8(), rng.choice(words(40), n).tolist()
    yield "utf8_constant", pa.utf8(), ["constant ☃"] * n
    yield "utf8_empty", pa.utf8(), [""] * n
    yield "utf8_uuid", pa.utf8(), [f"{random.getrandbits(128):032x}" for _ in range(n)]
    yield "large_utf8", pa.large_utf8(), words(n)
    yield "large_utf8_few", pa.large_utf8(), rng.choice(words(40), n).tolist()
    yield "binary", pa.binary(), [rng.bytes(random.randint(0, 40)) for _ in range(n)]
    yield "large_binary", pa.large_binary(), [rng.bytes(random.randint(0, 40)) for _ in range(n)]
    yield "fsb3", pa.binary(3), [rng.bytes(3) for _ in range(n)]
    yield "fsb16", pa.binary(16), [rng.bytes(16) for _ in range(n)]
    few = [rng.bytes(16) for _ in range(20)]
    yield "fsb16_few", pa.binary(16), [random.choice(few) for _ in range(n)]
    yield "decimal128", pa.decimal128(20, 3), [decimal.Decimal(int(x)).scaleb(-3) for x in rng.integers(-(2**50), 2**50, n)]
    yield "decimal256", pa.decimal256(50, 3), [decimal.Decimal(int(x)).scaleb(-3) for x in rng.integers(-(2**50), 2**50, n)]
    yield "date32", pa.date32(), [datetime.date(2020, 1, 1) + datetime.timedelta(int(x)) for x in rng.integers(0, 2000, n)]
    yield "date64", pa.date64(), [datetime.date(2020, 1, 1) + datetime.timedelta(int(x)) for x in rng.integers(0, 2000, n)]
    yield "time32_s", pa.time32("s"), rng.integers(0, 86400, n).tolist()
    yield "time32_ms", pa.time32("ms"), rng.integers(0, 86400_000, n).tolist()
    yield "time64_us", pa.time64("us"), rng.integers(0, 86400_000_000, n).tolist()
    yield "time64_ns", pa.time64("ns"), rng.integers(0, 86400_000_000_000, n).tolist()
    for unit, scale in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        yield f"timestamp_{unit}", pa.timestamp(unit), (rng.integers(1.6e9, 1.7e9, n) * scale + rng.integers(0, scale, n)).tolist()
    yield "timestamp_tz", pa.timestamp("us", "UTC"), rng.integers(1.6e15, 1.7e15, n).tolist()
    yield "duration", pa.duration("ms"), rng.integers(0, 10**9, n).tolist()
    yield "vector3", pa.list_(pa.float32(), 3), rng.normal(size=(n, 3)).astype(np.float32).tolist()
    yield "vector16_int8", pa.list_(pa.int8(), 16), rng.integers(-128, 128, (n, 16)).tolist()


def wide_columns(n):
    yield "vector64", pa.list_(pa.float32(), 64), rng.normal(size=(n, 64)).astype(np.float32).tolist()
    yield "vector32_f64", pa.list_(pa.float64(), 32), rng.normal(size=(n, 32)).tolist()
    yield "vector130_f16", pa.list_(pa.float16(), 130), [[np.float16(x) for x in row] for row in rng.normal(size=(n, 130))]
    yield "fsb300", pa.binary(300), [rng.bytes(300) for _ in range(n)]
    yield "utf8_long", pa.utf8(), [" ".join(words(random.randint(1, 20), 50)) for _ in range(n)]
    yield "large_utf8_long", pa.large_utf8(), [" ".join(words(random.randint(1, 20), 50)) for _ in range(n)]
    yield "large_binary_long", pa.large_binary(), [rng.bytes(random.randint(0, 1000)) for _ in range(n)]
    yield "binary_long", pa.binary(), [rng.bytes(random.randint(0, 1000)) for _ in range(n)]
    yield "matrix", pa.list_(pa.list_(pa.float32(), 4), 5), rng.normal(size=(n, 5, 4)).astype(np.float32).tolist()
    yield "matrix_wide", pa.list_(pa.list_(pa.float32(), 16), 8), rng.normal(size=(n, 8, 16)).astype(np.float32).tolist()


def nested_columns(n):
    i32 = lambda: random.randint(0, 1000) if random.random() < 0.9 else None
    few = lambda f, p=0.1, top=4: None if random.random() < p else [f() for _ in range(random.randint(0, top))]
    text = lambda: random.choice(["red", "green", "blue", None, "a rather longer piece of text than the others"])
    yield "list_int", pa.list_(pa.int32()), [few(i32) for _ in range(n)]
    yield "list_utf8", pa.list_(pa.utf8()), [few(text) for _ in range(n)]
    yield "large_list", pa.large_list(pa.int64()), [few(i32) for _ in range(n)]
    yield "list_list", pa.list_(pa.list_(pa.int32())), [few(lambda: few(i32)) for _ in range(n)]
    yield "list_vector", pa.list_(pa.list_(pa.float32(), 70)), [few(lambda: [random.random()] * 70, 0.1, 2) for _ in range(n)]
    point = pa.struct([("x", pa.int32()), ("y", pa.utf8())])
    yield "struct", point, [None if random.random() < 0.1 else {"x": i32(), "y": text()} for _ in range(n)]
    yield "list_struct", pa.list_(point), [few(lambda: {"x": i32(), "y": text()}) for _ in range(n)]
    deep = pa.struct([("tags", pa.list_(pa.utf8())), ("inner", pa.struct([("v", pa.list_(pa.list_(pa.int16())))]))])
    yield "deep", deep, [
        None if random.random() < 0.1 else {"tags": few(text), "inner": None if random.random() < 0.1 else {"v": few(lambda: few(lambda: random.randint(-5, 5)))}}
        for _ in range(n)
    ]
    yield "list_long", pa.list_(pa.utf8()), [few(lambda: "long " * random.randint(0, 120)) for _ in range(n)]
    yield "list_empty", pa.list_(pa.int32()), [[] for _ in range(n)]
    yield "list_null", pa.list_(pa.int32()), [None for _ in range(n)]
    yield "list_sparse", pa.list_(pa.int32()), [[i] if i % 5003 == 0 else [] for i in range(n)]
    yield "list_of_nulls", pa.list_(pa.int32()), [[None, None] for _ in range(n)]


def save(name, arrays, schema=None):
    table = pa.table(arrays, schema=schema)
    with pa.OSFile(os.path.join(out, name + ".arrow"), "wb") as f, pa.ipc.new_file(f, table.schema) as w:
        w.write_table(table, max_chunksize=7000)
    for version in ("2.1", "2.2", "2.3"):
        path = os.path.join(out, "stock", f"{name}.{version}.lance")
        try:
            with LanceFileWriter(path, table.schema, version=version) as w:
                for batch in table.to_batches(max_chunksize=8192):
                    w.write_batch(batch)
        except BaseException as e:  # some nested shapes are too much for it
            print(f"{name} {version}: the stock engine cannot write it: {type(e).__name__}", file=sys.stderr)
            if os.path.exists(path):
                os.remove(path)


def column(kind, values):
    return pa.array(values, kind)


for n in (0, 1, 10, 1000, 30_000):
    for share, suffix in ((0, "full"), (0.02, "some"), (0.5, "half"), (1, "null")):
        if n == 0 and share:
            continue
        arrays = {}
        for name, kind, values in scalar_columns(n):
            arrays[name] = column(kind, nulls(values, share))
        save(f"scalars-{n}-{suffix}", arrays)
for n in (1, 10, 3000):
    for share, suffix in ((0, "full"), (0.1, "some"), (1, "null")):
        save(f"wide-{n}-{suffix}", {name: column(kind, nulls(values, share)) for name, kind, values in wide_columns(n)})
for n in (1, 10, 1000, 20_000):
    for name, kind, values in nested_columns(n):
        save(f"nested-{n}-{name}", {name: column(kind, values)})


def random_type(depth):
    kind = random.choice(["leaf", "leaf", "struct", "list"]) if depth < 4 else "leaf"
    if kind == "list":
        return pa.list_(pa.field("item", random_type(depth + 1)))
    if kind == "struct":
        return pa.struct([pa.field(f"f{i}", random_type(depth + 1)) for i in range(random.randint(1, 3))])
    return random.choice([pa.int32(), pa.int64(), pa.utf8(), pa.bool_(), pa.float64(), pa.binary(16), pa.list_(pa.float32(), 3), pa.list_(pa.float32(), 80), pa.timestamp("us")])


def random_value(t, absence):
    if random.random() < absence:
        return None
    if pa.types.is_list(t):
        if random.random() < absence:
            return []
        return [random_value(t.value_type, absence) for _ in range(random.randint(1, 4))]
    if pa.types.is_struct(t):
        return {f.name: random_value(f.type, absence) for f in t}
    if pa.types.is_fixed_size_list(t):
        return [random.random()] * t.list_size
    if pa.types.is_string(t):
        return random.choice(["a", "few", "strings"]) if random.random() < 0.8 else "x" * random.choice([0, 3, 300])
    if pa.types.is_fixed_size_binary(t):
        return bytes([random.randint(0, 3)]) * 16
    if pa.types.is_boolean(t):
        return random.random() < 0.5
    return random.randint(0, 2000)


# Random nested types. Every fifth has an absence so frequent that whole pages have
# no value.
for i in range(40):
    kind, n, absence = random_type(0), random.choice([3, 100, 2500]), 0.9 if i % 5 == 0 else random.choice([0, 0.05, 0.3])
    save(f"random-{i}", {"c": column(kind, [random_value(kind, absence) for _ in range(n)])})

asked = {}
for i, (scheme, kind) in enumerate([(s, k) for s in ("lz4", "zstd", "fsst", "none") for k in ("int", "text", "long")]):
    values = {"int": lambda: rng.integers(-500, 500, 20_000).tolist(), "text": lambda: words(20_000),
              "long": lambda: [w * 10 for w in words(20_000, 50)]}[kind]()
    asked[f"{kind}_{scheme}"] = (pa.int64() if kind == "int" else pa.utf8(), values, scheme)
for name, (kind, values, scheme) in asked.items():
    save("asked-" + name, [column(kind, values)], pa.schema([pa.field("c", kind, metadata={"lance-encoding:compression": scheme})]))

# Vectors with null items, and bytes beyond 32 KiB a value.
items = rng.random((500, 80)) < 0.05
save("vector-items", {"v": column(pa.list_(pa.float32(), 80), [[None if m else 1.5 for m in row] for row in items]),
                      "narrow": column(pa.list_(pa.float32(), 8), [[None if m else 1.5 for m in row[:8]] for row in items])})
save("huge-text", {"text": column(pa.utf8(), ["lorem ipsum %d " % i * 4000 for i in range(40)])})
save("huge-bytes", {"bytes": column(pa.binary(), [rng.bytes(50_000) for _ in range(40)])})
save("huge-repeated", {"bytes": column(pa.binary(), [b"z" * 10_000, b"y" * 9_000] * 100)})
save("null-type", {"nothing": pa.nulls(500), "id": column(pa.int32(), list(range(500)))})
big = 400_000
save("big", {"id": column(pa.int64(), list(range(big))), "noise": column(pa.int64(), rng.integers(-(2**63), 2**63 - 1, big).tolist()),
             "text": column(pa.utf8(), words(big)), "flag": column(pa.bool_(), nulls((rng.random(big) < 0.5).tolist(), 0.01)),
             "level": column(pa.int8(), nulls(rng.integers(0, 5, big).tolist(), 0.001))})
save("big-vectors", {"v": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=60_000 * 128).astype(np.float32)), 128)})
