"""Drives pylance for the interop suite: one JSON request a line on standard
input, one JSON reply a line on standard output, in order.

Requests and replies are described beside their Go types in ../engine.go; rows
travel as Arrow IPC streams in base64.
"""

import base64
import json
import os
import sys
import uuid

import lance
import numpy as np
import pyarrow as pa
from lance.file import LanceFileWriter

# Replies go to the real standard output; whatever else prints goes to the log.
replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

SCALAR_KINDS = {
    "BTREE": {},
    "BITMAP": {},
    "LABEL_LIST": {},
    "NGRAM": {},
    "ZONEMAP": {},
    "BLOOMFILTER": {},
    "FTS": {"with_position": True},
}
VECTOR_KINDS = ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ"]
PRODUCT_QUANTIZED = ["IVF_PQ", "IVF_HNSW_PQ"]

# Handles stay open between requests, as in a service, so that what the engine
# caches of a table meets the commits that others make.
tables = {}


def open_table(path):
    ds = tables.get(path)
    if ds is None:
        ds = tables[path] = lance.dataset(path)
    else:
        ds.checkout_latest()
    return ds


# The engine wants 128-bit values aligned to 16 bytes, which base64 does not know.
aligned = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)


def decode(rows):
    return pa.ipc.open_stream(base64.b64decode(rows), options=aligned).read_all()


def create(table, rows, storage=None, v1Manifests=False, stableRowIds=False, rowsPerFile=None):
    options = {"data_storage_version": storage} if storage else {}
    if rowsPerFile:
        options |= {"max_rows_per_file": rowsPerFile, "max_rows_per_group": rowsPerFile}
    tables[table] = ds = lance.write_dataset(
        decode(rows),
        table,
        mode="create",
        enable_v2_manifest_paths=not v1Manifests,
        enable_stable_row_ids=stableRowIds,
        **options,
    )
    return {"version": ds.version}


def append(table, rows, rowsPerFile=None):
    ds = open_table(table)
    options = {"max_rows_per_file": rowsPerFile, "max_rows_per_group": rowsPerFile} if rowsPerFile else {}
    ds.insert(decode(rows), mode="append", **options)
    return {"version": ds.version}


def delete(table, where):
    ds = open_table(table)
    ds.delete(where)
    return {"version": ds.version}


def update(table, where, set):
    ds = open_table(table)
    ds.update(set, where=where)
    return {"version": ds.version}


def merge(table, on, rows):
    ds = open_table(table)
    ds.merge_insert(on).when_matched_update_all().when_not_matched_insert_all().execute(decode(rows))
    ds.checkout_latest()
    return {"version": ds.version}


def add_columns(table, sql=None, rows=None, on=None):
    """Adds columns: computed, null (rows has none), or with the values of rows."""
    ds = open_table(table)
    if sql:
        ds.add_columns(sql)
    elif on:
        ds.merge(decode(rows), on)
    else:
        ds.add_columns(decode(rows).schema)
    return {"version": ds.version}


def alter_column(table, column, name=None, rows=None):
    """Renames a column, or gives it the type of the only column of rows."""
    ds = open_table(table)
    change = {"path": column}
    if name:
        change["name"] = name
    if rows:
        change["data_type"] = decode(rows).schema.types[0]
    ds.alter_columns(change)
    return {"version": ds.version}


def drop_columns(table, columns):
    ds = open_table(table)
    ds.drop_columns(columns)
    return {"version": ds.version}


def updated_columns(ds, rows, on):
    fragments, fields = [], []
    for f in ds.get_fragments():
        fragment, fields = f.update_columns(rows, left_on=on, right_on=on)
        fragments.append(fragment)
    return fragments, fields


def replace_files(ds, rows, on):
    """Writes files with the column alone in the place of those that have it alone."""
    column = next(name for name in rows.column_names if name != on)
    values = dict(zip(rows.column(on).to_pylist(), rows.column(column).to_pylist()))
    field = ds.lance_schema.field(column).id()
    groups = []
    for f in ds.get_fragments():
        file = next((d for d in f.metadata.files if list(d.fields) == [field]), None)
        if file is None:
            raise ValueError(f"fragment {f.fragment_id} has no file of {column} alone")
        # Deleted rows have values, too.
        old = f.to_table(columns=[on, column], with_row_address=True)
        new = [None] * f.physical_rows
        for key, value, addr in zip(*(old.column(c).to_pylist() for c in (on, column, "_rowaddr"))):
            new[addr & 0xFFFFFFFF] = values.get(key, value)
        name = f"{uuid.uuid4()}.lance"
        schema = pa.schema([ds.schema.field(column)])
        version = f"{file.file_major_version}.{file.file_minor_version}"
        with LanceFileWriter(os.path.join(ds.uri, "data", name), schema, version=version) as w:
            w.write_batch(pa.table({column: new}, schema=schema))
        groups.append(
            lance.LanceOperation.DataReplacementGroup(
                f.fragment_id,
                lance.fragment.DataFile(
                    name, [field], list(file.column_indices), file.file_major_version, file.file_minor_version
                ),
            )
        )
    return lance.LanceOperation.DataReplacement(groups)


def rewrite_column(table, recipe, on, rows):
    """Gives the rows that rows has the keys of its values, where they lie."""
    ds = open_table(table)
    rows = decode(rows)
    if recipe == "merge":
        ds.merge_insert(on).when_matched_update_all().execute(rows)
    elif recipe == "add-and-drop":
        column = next(name for name in rows.column_names if name != on)
        ds.merge(rows.rename_columns([on if name == on else "added" for name in rows.column_names]), on)
        ds.add_columns({"both": f"coalesce(added, {column})"})
        ds.drop_columns([column, "added"])
        ds.alter_columns({"path": "both", "name": column})
    else:
        if recipe == "data-replacement":
            op = replace_files(ds, rows, on)
        else:
            fragments, fields = updated_columns(ds, rows, on)
            op = {
                "update": lambda: lance.LanceOperation.Update(updated_fragments=fragments, fields_modified=fields),
                "update-without-fields": lambda: lance.LanceOperation.Update(updated_fragments=fragments),
                "merge-operation": lambda: lance.LanceOperation.Merge(fragments, ds.schema),
            }[recipe]()
        lance.LanceDataset.commit(table, op, read_version=ds.version)
    ds.checkout_latest()
    return {"version": ds.version}


def churn(table, writes):
    """Writes follow each other on one handle, which sees what others commit only
    when one of its own writes has to be tried again."""
    ds = tables.get(table) or open_table(table)
    for w in writes:
        if w["op"] == "delete":
            ds.delete(w["where"])
        elif w["op"] == "update":
            ds.update(w["set"], where=w["where"])
        else:
            ds.merge_insert(w["on"]).when_matched_update_all().when_not_matched_insert_all().execute(decode(w["rows"]))
    return {}


def optimize(table):
    """What the other clients call optimize: compact, then extend the indexes."""
    ds = open_table(table)
    stats = ds.optimize.compact_files()
    ds.optimize.optimize_indices()
    return {
        "version": ds.version,
        "fragmentsRemoved": stats.fragments_removed,
        "fragmentsAdded": stats.fragments_added,
    }


def compact(table, deferRemap=False):
    ds = open_table(table)
    stats = ds.optimize.compact_files(defer_index_remap=deferRemap)
    return {
        "version": ds.version,
        "fragmentsRemoved": stats.fragments_removed,
        "fragmentsAdded": stats.fragments_added,
    }


def create_index(table, column, kind, partitions=None, subVectors=None):
    ds = open_table(table)
    if kind in SCALAR_KINDS:
        ds.create_scalar_index(column, kind, replace=True, **SCALAR_KINDS[kind])
    elif kind in VECTOR_KINDS:
        sub = {"num_sub_vectors": subVectors} if kind in PRODUCT_QUANTIZED else {}
        ds.create_index(column, kind, num_partitions=partitions, replace=True, **sub)
    else:
        raise ValueError(f"this engine cannot build an index of kind {kind}")
    ds.checkout_latest()
    return {"version": ds.version}


def indices(table):
    ds = open_table(table)
    out = []
    for d in ds.describe_indices():
        stats = ds.stats.index_stats(d.name)
        out.append(
            {
                "name": d.name,
                "kind": d.index_type,
                "columns": list(d.field_names),
                "indexedRows": stats["num_indexed_rows"],
                "unindexedRows": stats["num_unindexed_rows"],
            }
        )
    return {"indices": out}


def query(table, version=None, columns=None, where=None, fts=None, knn=None, limit=None, blobs=False):
    ds = open_table(table)
    if version:
        ds = ds.checkout_version(version)
    options = {"blob_handling": "all_binary"} if blobs else {}
    if knn:
        options["nearest"] = {
            "column": knn["column"],
            "q": np.array(knn["vector"], dtype=np.float32),
            "k": limit,
            "nprobes": knn["nprobes"],
        }
        for name, key in (("refine", "refine_factor"), ("ef", "ef")):
            if knn.get(name):
                options["nearest"][key] = knn[name]
        options["prefilter"] = True
    elif limit:
        options["limit"] = limit
    if fts:
        options["full_text_query"] = {"columns": [fts["column"]], "query": fts["text"]}
    scanner = ds.scanner(columns=columns, filter=where, **options)
    plan = scanner.explain_plan(True)
    rows = scanner.to_table()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as w:
        w.write_table(rows)
    return {"batches": [base64.b64encode(sink.getvalue()).decode()], "plan": plan}


def count(table, where=None):
    return {"rows": open_table(table).count_rows(where)}


def version(table):
    return {"version": open_table(table).version}


def restore(table, version):
    ds = tables[table] = lance.dataset(table, version=version)
    ds.restore()
    return {"version": open_table(table).version}


def validate(table):
    open_table(table).validate()
    return {}


def remap(table, addrs):
    """Translates old row addresses through the table's fragment reuse index."""
    got = open_table(table).remap_row_addrs(pa.array(addrs, pa.uint64()))
    return {"addrs": None if got is None else got.to_pylist()}


def close(table):
    tables.pop(table, None)
    return {}


def hello():
    return {"kinds": list(SCALAR_KINDS) + VECTOR_KINDS}


OPS = {
    f.__name__: f
    for f in (
        hello, create, append, delete, update, merge, churn, add_columns, alter_column, drop_columns, rewrite_column,
        optimize, compact, create_index, indices, query, count, version, restore, validate, remap, close,
    )
}  # fmt: skip

for line in sys.stdin:
    try:
        request = json.loads(line)
        op = OPS.get(request.pop("op"))
        if op is None:
            raise ValueError(f"no such operation: {line[:100]}")
        reply = op(**request)
    except BaseException as e:  # also what the engine panics with
        reply = {"error": f"{type(e).__name__}: {e}"}
    replies.write(json.dumps(reply) + "\n")
    replies.flush()
