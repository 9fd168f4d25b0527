"""make.py DIR: the table that the installed release of pylance writes, as DIR/t.lance,
and its rows as DIR/rows.jsonl. README.md says which releases wrote which directory.

Two fragments. Columns are such that every kind of page comes up, and that a writer of
the finished format 2.2 would choose the pages that its drafts lack: pages of one value,
and levels of few runs."""

import json
import os
import shutil
import sys

import lance
import pyarrow as pa

out = sys.argv[1]
version = sys.argv[2] if len(sys.argv) > 2 else None
rows = 120
i = range(rows)
packed = {b"packed": b"true"}
full = {b"lance-encoding:structural-encoding": b"fullzip"}
zstd = {b"lance-encoding:compression": b"zstd"}
pair = pa.struct([("a", pa.int32()), ("b", pa.string())])
columns = [
    ("id", pa.int64(), list(i)),
    ("one", pa.int32(), [7] * rows),
    ("one_text", pa.string(), ["same"] * rows),
    ("one_bool", pa.bool_(), [True] * rows),
    ("few", pa.int64(), [k % 3 << 40 for k in i]),
    ("runs_of_nulls", pa.int64(), [None if k // 20 % 2 else k * 2654435761 for k in i]),
    ("text", pa.string(), [None if k < 50 else "row %d of %s" % (k, "abcdefgh" * (k % 5)) for k in i]),
    ("words", pa.string(), [["red", "green", None][k % 3] for k in i]),
    ("wide", pa.string(), ["w%d" % k * 80 if k % 10 == 0 else None for k in i], full),
    ("packed_text", pa.string(), ["x" * 40 + str(k) for k in i], zstd),
    ("no_lists", pa.list_(pa.int64()), [None] * rows),
    ("empty_lists", pa.list_(pa.int64()), [[]] * rows),
    ("lists_of_nulls", pa.list_(pa.int64()), [[None] * (k % 3) for k in i]),
    ("lists", pa.list_(pa.int32()), [None if k < 40 else [k, None, 3][: k % 4] for k in i]),
    ("lists_of_text", pa.list_(pa.string()), [["a", "bb"][: k % 3] for k in i]),
    ("struct", pair, [None if k < 30 else {"a": k, "b": str(k)} for k in i]),
    ("no_structs", pair, [None] * rows),
    ("vector", pa.list_(pa.float32(), 4), [[k, 1, 2, 0.5] for k in i]),
    ("vectors", pa.list_(pa.float32(), 4), [None if k < 60 else [k, 1, None, 0.5] for k in i]),
    ("long_vector", pa.list_(pa.float32(), 64), [None if k % 9 else [k] * 64 for k in i]),
]
if version == "2.2":
    columns.append(("packed", pair, [{"a": k, "b": str(k)} for k in i], packed))
if version is None:  # an early release, of format 2.0
    columns = columns[:1] + columns[6:7]

fields = [pa.field(c[0], c[1], True, c[3] if len(c) > 3 else None) for c in columns]
data = pa.table([pa.array(c[2], c[1]) for c in columns], schema=pa.schema(fields))
path = os.path.join(out, "t.lance")
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)
lance.write_dataset(data.slice(0, 80), path, **({"data_storage_version": version} if version else {}))
lance.write_dataset(data.slice(80), path, mode="append")
with open(os.path.join(out, "rows.jsonl"), "w") as f:
    for row in data.to_pylist():
        f.write(json.dumps(row) + "\n")
assert lance.dataset(path).to_table().to_pylist() == data.to_pylist()
