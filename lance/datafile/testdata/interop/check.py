"""Reads data files with the stock engine and compares them with Arrow IPC files.

usage: check.py DIR

DIR is as generate.py left it, with NAME.VERSION.lance besides, written by rehome.
Prints one JSON object a line: the file, whether the engine found the same values,
and for each column the bytes that rehome and the stock engine took.
"""

import glob
import json
import os
import sys

import pyarrow as pa
from lance.file import LanceFileReader

root = sys.argv[1]


def column_bytes(path):
    m = LanceFileReader(path).metadata()
    return [sum(b.size for p in c.pages for b in p.buffers) for c in m.columns]


def leaves(field, path):
    t = field.type
    if pa.types.is_struct(t):
        return [x for f in t for x in leaves(f, path + "." + f.name)]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return leaves(t.value_field, path + "[]")
    return [path]


for path in sorted(glob.glob(os.path.join(root, "*.lance"))):
    name = os.path.basename(path)
    with pa.OSFile(os.path.join(root, name.rsplit(".", 3)[0] + ".arrow"), "rb") as f:
        want = pa.ipc.open_file(f).read_all()
    result = {"file": name, "problems": []}
    try:
        reader = LanceFileReader(path)
        got = reader.read_all().to_table()
        for c in want.column_names:
            a, b = want[c].combine_chunks(), got[c].combine_chunks()
            if a.type != b.type:
                result["problems"].append(f"{c}: type {b.type}, want {a.type}")
            elif not a.equals(b):
                at = next((i for i in range(min(len(a), len(b))) if not a[i].equals(b[i])), None)
                result["problems"].append(f"{c}: row {at} of {len(b)} differs: {str(b[at])[:80] if at is not None else ''}, want {str(a[at])[:80] if at is not None else len(a)}")
        n = len(want)
        if n > 3:
            rows = sorted({0, 1, n // 3, n // 2, n - 2, n - 1})
            taken = reader.take_rows(rows).to_table()
            for c in want.column_names:
                if not want[c].take(rows).combine_chunks().equals(taken[c].combine_chunks()):
                    result["problems"].append(f"{c}: taking rows {rows} gives others")
            part = reader.read_range(n // 4, n // 2).to_table()
            for c in want.column_names:
                if not want[c].slice(n // 4, n // 2).combine_chunks().equals(part[c].combine_chunks()):
                    result["problems"].append(f"{c}: reading a range gives other rows")
    except BaseException as e:  # the engine panics across the language boundary
        result["problems"].append(f"{type(e).__name__}: {str(e)[:300]}")
    stock = os.path.join(root, "stock", name)
    names = [x for f in want.schema for x in leaves(f, f.name)]
    result["columns"], result["sizes"] = [], [os.path.getsize(path), 0]
    if os.path.exists(stock):
        result["columns"] = [list(x) for x in zip(names, column_bytes(path), column_bytes(stock))]
        result["sizes"][1] = os.path.getsize(stock)
    print(json.dumps(result), flush=True)
