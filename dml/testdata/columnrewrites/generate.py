"""Makes the tables beside it: one for each way in which some release of pylance
rewrites a column where it lies.

    python3 -m venv V && V/bin/pip install pylance==0.25.2
    V/bin/python generate.py

makes those of the release that is installed, and leaves the others. Each table has
20 rows in two fragments (k and n count, s is "s" and k, f is 0), and in its last
version f is 7 where k is even. expected.json lists the version before that, and the
rows after it.
"""

import json
import os
import shutil

import lance
import pyarrow as pa

here = os.path.dirname(os.path.abspath(__file__))
release = lance.__version__

schema = pa.schema(
    [
        pa.field("k", pa.int64()),
        pa.field("s", pa.string()),
        pa.field("f", pa.float64()),
        pa.field("n", pa.int64(), nullable=False),
    ]
)


def rows(lo, hi):
    ids = range(lo, hi)
    return pa.table(
        {"k": list(ids), "s": [f"s{i}" for i in ids], "f": [0.0] * len(ids), "n": list(ids)}, schema=schema
    )


def new_values(lo=0, hi=20):
    ids = [i for i in range(lo, hi) if i % 2 == 0]
    return pa.table({"k": ids, "f": [7.0] * len(ids)}, schema=pa.schema([schema.field("k"), schema.field("f")]))


def partial_merge(ds):
    """merge_insert of a source that has only some columns."""
    ds.merge_insert("k").when_matched_update_all().execute(new_values())


def changed(ds):
    """The fragments with f rewritten, and the fields, as update_columns returns them."""
    fragments, fields = [], []
    for f in ds.get_fragments():
        meta, fields = f.update_columns(new_values(), left_on="k", right_on="k")
        fragments.append(meta)
    return fragments, fields


def update_columns(ds):
    """What the documentation says to do with the result of update_columns."""
    fragments, fields = changed(ds)
    op = lance.LanceOperation.Update(updated_fragments=fragments, fields_modified=fields)
    lance.LanceDataset.commit(ds.uri, op, read_version=ds.version)


def update_columns_without_fields(ds):
    """The same, without a word about what was modified."""
    fragments, _ = changed(ds)
    op = lance.LanceOperation.Update(updated_fragments=fragments)
    lance.LanceDataset.commit(ds.uri, op, read_version=ds.version)


def update_columns_as_delete(ds):
    """The same fragments, committed as a delete."""
    fragments, _ = changed(ds)
    op = lance.LanceOperation.Delete(updated_fragments=fragments, deleted_fragment_ids=[], predicate="false")
    lance.LanceDataset.commit(ds.uri, op, read_version=ds.version)


def add_and_drop(ds):
    """A new column takes the place of f, which is dropped, and its name."""
    ds.add_columns({"g": "cast((1 - k % 2) * 7 as double)"})
    ds.drop_columns(["f"])
    ds.alter_columns({"path": "g", "name": "f"})


def data_replacement(ds):
    """LanceOperation.DataReplacement of a file with f alone."""
    from lance.file import LanceFileWriter

    # f gets files of its own first.
    ds.drop_columns(["f"])
    ds.add_columns({"f": "cast(0.0 as double)"})
    groups = []
    for f in ds.get_fragments():
        old = f.metadata.files[-1]
        name = f"replaced-{f.fragment_id}.lance"
        w = LanceFileWriter(os.path.join(ds.uri, "data", name), schema=pa.schema([schema.field("f")]))
        ids = f.to_table(columns=["k"]).column("k").to_pylist()
        w.write_batch(pa.table({"f": [7.0 if i % 2 == 0 else 0.0 for i in ids]}, schema=pa.schema([schema.field("f")])))
        w.close()
        file = lance.fragment.DataFile(
            name, list(old.fields), list(old.column_indices), old.file_major_version, old.file_minor_version
        )
        groups.append(lance.LanceOperation.DataReplacementGroup(f.fragment_id, file))
    version = ds.version
    lance.LanceDataset.commit(ds.uri, lance.LanceOperation.DataReplacement(groups), read_version=version)
    return version


recipes = [
    partial_merge,
    update_columns,
    update_columns_without_fields,
    update_columns_as_delete,
    add_and_drop,
    data_replacement,
]

for recipe in recipes:
    dir = os.path.join(here, f"{recipe.__name__}-{release}")
    shutil.rmtree(dir, ignore_errors=True)
    uri = os.path.join(dir, "t.lance")
    try:
        ds = lance.write_dataset(rows(0, 10), uri)
        ds = lance.write_dataset(rows(10, 20), uri, mode="append")
        before = recipe(ds) or 2
    except (AttributeError, TypeError, ImportError, OSError, RuntimeError) as e:
        print(f"{release}: {recipe.__name__}: not in this release: {e}")
        shutil.rmtree(dir)
        continue
    after = lance.dataset(uri).to_table(columns=["k", "s", "f", "n"]).to_pylist()
    values = {r["k"]: r["f"] for r in after}
    if recipe is update_columns_as_delete and not any(values.values()):
        print(f"{release}: {recipe.__name__}: not in this release: it takes deletions only")
        shutil.rmtree(dir)
        continue
    assert values == {k: 7.0 if k % 2 == 0 else 0.0 for k in range(20)}, values
    with open(os.path.join(dir, "expected.json"), "w") as out:
        json.dump({"release": release, "recipe": recipe.__doc__, "before": before, "rows": after}, out)
        out.write("\n")
    print(f"{release}: {recipe.__name__}: made")
