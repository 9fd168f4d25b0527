"""Writes tables with values that Lance writes and cannot read again, and values that
are none of their type. Run with pylance 14.0.2:

    python testdata/invalid/make.py testdata/invalid
"""
import struct
import sys

import lance
import pyarrow as pa


def buffer(b):
    return pa.py_buffer(b)


def text(*values):
    offsets, data = [0], b""
    for v in values:
        data += v
        offsets.append(len(data))
    return pa.Array.from_buffers(pa.string(), len(values), [None, buffer(struct.pack(f"<{len(offsets)}i", *offsets)), buffer(data)])


def ids(first, n):
    return pa.array(range(first, first + n), pa.int64())


def write(path, *batches, **opts):
    for i, columns in enumerate(batches):
        lance.write_dataset(pa.table(columns), path, mode="append" if i else "create", **opts)


def lists(values):
    t = pa.list_(pa.string())
    n = len(values)
    return pa.Array.from_buffers(t, n, [None, buffer(struct.pack(f"<{n + 1}i", *range(n + 1)))], children=[values])


def main(out):
    good = [f"row {i}".encode() for i in range(4)]
    # Fragment 0 is right; of fragment 1, row 1 is not, and row 3 in the list.
    bad = [b"a", b"caf\xe9", b"b", b"c"]
    items = [b"a", b"b", b"c", b"\xff"]
    for version in "2.0", "2.1", "2.2":
        write(
            f"{out}/text_{version.replace('.', '_')}.lance",
            {"id": ids(0, 4), "s": text(*good), "l": lists(text(*good))},
            {"id": ids(4, 4), "s": text(*bad), "l": lists(text(*items))},
            data_storage_version=version,
        )
    ok = pa.array([1, 2], pa.int32())
    of = lambda t, code, *v: pa.Array.from_buffers(t, 2, [None, buffer(b"".join(struct.pack(code, x) for x in v))])
    decimals = pa.Array.from_buffers(pa.decimal128(5, 2), 2, [None, buffer((100).to_bytes(16, "little") + (10**12).to_bytes(16, "little"))])
    write(
        f"{out}/values.lance",
        {
            "id": ok,
            "dec": decimals,
            "day": of(pa.date32(), "<i", 0, 2**31 - 1),
            "clock": of(pa.time32("s"), "<i", 0, 86400),
            "at": of(pa.timestamp("us"), "<q", 0, 2**63 - 1),
        },
    )


main(sys.argv[1])
