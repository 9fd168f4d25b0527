"""Asks a real engine what SQL means, for the tests of package sqlexpr.

    python generate.py        (needs pylance, version 14.0.2 wrote what is checked in)

rows.arrow        the table that everything is evaluated on
predicates.txt    conditions; below each, after "engine:", the ids of the rows that match, or "error"
beside.txt        more of these
expressions.txt   expressions; below each the type of the values, or "error"
expressions.arrow their values, one column each, named by the expression
functions.txt, functions.arrow: the same for the table of functions, each of which must occur

Only what follows "engine:" is written anew: to add a case, add its line and run this.
Where package sqlexpr does something else on purpose, "ours:" says what and "why:" why.
"""
import datetime as dt
import decimal
import os
import shutil
import tempfile

import lance
import pyarrow as pa

D = decimal.Decimal
ROWS = 40
NAN, INF = float("nan"), float("inf")
HERE = os.path.dirname(os.path.abspath(__file__))

TIMES = [
    dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 12, 30, 15, 123456), None, dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
    dt.datetime(2021, 6, 15, 8), dt.datetime(2020, 1, 1, 0, 0, 0, 1000), dt.datetime(1900, 2, 28), dt.datetime(2024, 2, 29, 23, 59, 59),
]


def cut(unit):
    return [t and t.replace(microsecond=t.microsecond // unit * unit) for t in TIMES]


# The lengths have few common factors, so that the columns meet in many ways.
COLUMNS = {
    "i8": ([0, 1, -1, 127, -128, None, 5], pa.int8()),
    "i16": ([0, 1, -1, 32767, -32768, None, 300], pa.int16()),
    "i32": ([0, 1, -1, 5, None, 2147483647, -2147483648, 7, 10, -7], pa.int32()),
    "i64": ([0, 1, -1, 5, None, 9223372036854775807, -9223372036854775808, 7, 10, -7, 3], pa.int64()),
    "u8": ([0, 1, 255, None, 7], pa.uint8()),
    "u16": ([0, 1, 65535, None, 7, 300], pa.uint16()),
    "u32": ([0, 1, 4294967295, None, 7], pa.uint32()),
    "u64": ([0, 1, 18446744073709551615, None, 7, 9223372036854775807, 10], pa.uint64()),
    "n": ([1, 2, 3, None, 4, 5, 6, 0], pa.int32()),
    "f32": ([0.0, -0.0, 1.5, -1.5, NAN, INF, -INF, None, 0.1, 3.0], pa.float32()),
    "f64": ([0.0, -0.0, 1.5, -1.5, NAN, INF, -INF, None, 0.1, 3.0, 2.5, 1e20, 1e-7], pa.float64()),
    "s": (["", "a", "A", "x", "xy", "x%", "x_y", None, "héllo", "ÉCOLE", "日本語", "it's", "a\\b", "10", "-3", "a\nb", "xyz", "ß", " pad "], pa.utf8()),
    "s2": (["a", "", None, "x", "XY", "x%"], pa.utf8()),
    "ls": (["a", "", None, "x", "xy"], pa.large_utf8()),
    "num": (["10", "-3", "0", None, "2147483648"], pa.utf8()),
    "b": ([True, False, None], pa.bool_()),
    "b2": ([True, True, False, None, False, None, None], pa.bool_()),
    "bin": ([b"", b"\x00", b"ab", None, b"\xff\x00"], pa.binary()),
    "fsb": ([b"ab", b"\x00\x01", None], pa.binary(2)),
    "d32": ([dt.date(2020, 1, 1), dt.date(1969, 12, 31), None, dt.date(2021, 6, 15), dt.date(1900, 2, 28)], pa.date32()),
    "d64": ([dt.date(2020, 1, 1), dt.date(1969, 12, 31), None, dt.date(2021, 6, 15)], pa.date64()),
    "ts_s": (cut(1000000), pa.timestamp("s")),
    "ts_ms": (cut(1000), pa.timestamp("ms")),
    "ts": (TIMES, pa.timestamp("us")),
    "ts_ns": (TIMES, pa.timestamp("ns")),
    "ts_tz": (TIMES, pa.timestamp("us", "UTC")),
    "ts_b": (cut(1000), pa.timestamp("ms", "Europe/Berlin")),
    "ts_o": (TIMES, pa.timestamp("us", "+02:00")),
    "t32": ([dt.time(0, 0, 1), None, dt.time(12, 30)], pa.time32("s")),
    "t64": ([dt.time(0, 0, 1), None, dt.time(12, 30, 0, 5)], pa.time64("us")),
    "dur": ([dt.timedelta(seconds=1), None, dt.timedelta(days=-1)], pa.duration("us")),
    "dec": ([D("0.00"), D("1.50"), D("-1.50"), None, D("12345.67"), D("0.10"), D("99999999.99")], pa.decimal128(10, 2)),
    "dec2": ([D("0.000"), D("1.500"), D("2.125"), None, D("-3.000"), D("0.100")], pa.decimal128(12, 3)),
    "dec256": ([D("0.00"), D("1.50"), None], pa.decimal256(50, 2)),
    "st": (
        [{"x": 1, "y": "a", "z": {"w": 1.5}}, {"x": None, "y": "b", "z": None}, None, {"x": 3, "y": None, "z": {"w": None}}, {"x": -1, "y": "", "z": {"w": NAN}}],
        pa.struct([("x", pa.int32()), ("y", pa.utf8()), ("z", pa.struct([("w", pa.float64())]))]),
    ),
    "labels": ([["a", "b"], [], None, ["b", None], ["c"], [None], ["a", "a", ""]], pa.list_(pa.utf8())),
    "nums": ([[1, 2], [], None, [2, None], [3], [-1, 0]], pa.list_(pa.int64())),
    "floats": ([[0.5, NAN], [], None, [None, 0.1]], pa.list_(pa.float32())),
    "vec": ([[1.0, 2.0], None, [0.0, NAN]], pa.list_(pa.float32(), 2)),
    "dict": (["a", "b", None, "", "x"], pa.dictionary(pa.int32(), pa.utf8())),
    "Weird Name": ([1, 2, None], pa.int32()),
    "UPPER": ([1, None, 3], pa.int32()),
    "order": ([3, 1, None, 2], pa.int32()),
}


def table():
    columns = {"id": pa.array(range(ROWS), pa.int64())}
    for name, (values, kind) in COLUMNS.items():
        columns[name] = pa.array([values[i % len(values)] for i in range(ROWS)], kind)
    return pa.table(columns)


def spans(ids):
    out = []
    for i in ids:
        if out and out[-1][1] == i - 1:
            out[-1][1] = i
        else:
            out.append([i, i])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in out) or "none"


def refresh(name, answer):
    """Writes the answers below the cases of a file."""
    path = os.path.join(HERE, name)
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    out = []
    for line in lines:
        if line.startswith("\tengine:"):
            continue
        out.append(line)
        if line and not line.startswith(("\t", "#")):
            out.append("\tengine: " + answer(line))
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def main():
    rows = table()
    with pa.OSFile(os.path.join(HERE, "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as w:
        w.write_table(rows)
    place = tempfile.mkdtemp()
    try:
        ds = lance.write_dataset(rows, os.path.join(place, "t.lance"), data_storage_version="2.1")

        def matching(expr):
            try:
                return spans(ds.to_table(columns=["id"], filter=expr)["id"].to_pylist())
            except BaseException:  # the engine panics on some texts
                return "error"

        values = {}

        def evaluated(expr):
            try:
                v = ds.to_table(columns={"id": "id", "v": expr})["v"].combine_chunks()
            except BaseException:
                return "error"
            if v.type == pa.string_view():
                v = v.cast(pa.utf8())
            values[expr] = v
            return str(v.type)

        refresh("predicates.txt", matching)
        refresh("beside.txt", matching)
        for name in ("expressions", "functions"):
            values.clear()
            refresh(name + ".txt", evaluated)
            out = pa.table(values)
            with pa.OSFile(os.path.join(HERE, name + ".arrow"), "wb") as sink, pa.ipc.new_file(sink, out.schema) as w:
                w.write_table(out)
    finally:
        shutil.rmtree(place)


main()
