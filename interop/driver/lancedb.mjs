// Drives @lancedb/lancedb for the interop suite: one JSON request a line on
// standard input, one JSON reply a line on standard output, in order.
//
//   node lancedb.mjs ENGINE_DIR
//
// ENGINE_DIR is a folder whose node_modules hold the engine. Requests and replies
// are described beside their Go types in ../engine.go; rows travel as Arrow IPC
// streams in base64, and what a query returns is the engine's own IPC, never
// decoded here.
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";

const require = createRequire(path.resolve(process.argv[2], "driver.js"));
const lancedb = require("@lancedb/lancedb");
const arrow = require("apache-arrow");

const indexKinds = {
  BTREE: () => lancedb.Index.btree(),
  BITMAP: () => lancedb.Index.bitmap(),
  LABEL_LIST: () => lancedb.Index.labelList(),
  FM: () => lancedb.Index.fm(),
  FTS: () => lancedb.Index.fts({ withPosition: true }),
  IVF_FLAT: (p) => lancedb.Index.ivfFlat({ numPartitions: p.partitions }),
  IVF_PQ: (p) => lancedb.Index.ivfPq({ numPartitions: p.partitions, numSubVectors: p.subVectors }),
  IVF_RQ: (p) => lancedb.Index.ivfRq({ numPartitions: p.partitions }),
  IVF_HNSW_PQ: (p) => lancedb.Index.hnswPq({ numPartitions: p.partitions, numSubVectors: p.subVectors }),
  IVF_HNSW_SQ: (p) => lancedb.Index.hnswSq({ numPartitions: p.partitions }),
};

// Handles stay open between requests, as in a service, so that what an engine
// caches of a table meets the commits that others make.
const tables = new Map();

async function connect(table) {
  if (!table.endsWith("/t.lance")) throw new Error(`table path must end in /t.lance: ${table}`);
  return lancedb.connect(path.dirname(table));
}

async function open(table) {
  let t = tables.get(table);
  if (t === undefined) {
    t = await (await connect(table)).openTable("t");
    tables.set(table, t);
  } else {
    await t.checkoutLatest();
  }
  return t;
}

const decode = (rows) => arrow.tableFromIPC(Buffer.from(rows, "base64"));

const ops = {
  async hello() {
    return { kinds: Object.keys(indexKinds) };
  },

  async create({ table, rows, storage, v1Manifests, stableRowIds }) {
    const storageOptions = {};
    if (storage) storageOptions.newTableDataStorageVersion = storage;
    if (v1Manifests) storageOptions.newTableEnableV2ManifestPaths = "false";
    if (stableRowIds) storageOptions.newTableEnableStableRowIds = "true";
    const t = await (await connect(table)).createTable("t", decode(rows), { storageOptions });
    tables.set(table, t);
    return { version: await t.version() };
  },

  async append({ table, rows }) {
    const t = await open(table);
    await t.add(decode(rows));
    return { version: await t.version() };
  },

  async delete({ table, where }) {
    const t = await open(table);
    await t.delete(where);
    return { version: await t.version() };
  },

  async update({ table, where, set }) {
    const t = await open(table);
    await t.update({ where, valuesSql: set });
    return { version: await t.version() };
  },

  async merge({ table, on, rows }) {
    const t = await open(table);
    await t.mergeInsert(on).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(decode(rows));
    return { version: await t.version() };
  },

  async add_columns({ table, sql }) {
    if (!sql) throw new Error("this engine's driver adds only columns that are computed");
    const t = await open(table);
    await t.addColumns(Object.entries(sql).map(([name, valueSql]) => ({ name, valueSql })));
    return { version: await t.version() };
  },

  async alter_column({ table, column, name }) {
    if (!name) throw new Error("this engine's driver only renames columns");
    const t = await open(table);
    await t.alterColumns([{ path: column, rename: name }]);
    return { version: await t.version() };
  },

  async drop_columns({ table, columns }) {
    const t = await open(table);
    await t.dropColumns(columns);
    return { version: await t.version() };
  },

  // Writes follow each other on one handle, which sees what others commit only when
  // one of its own writes has to be tried again.
  async churn({ table, writes }) {
    const t = tables.get(table) ?? (await open(table));
    for (const { op, where, set, on, rows } of writes) {
      if (op === "delete") await t.delete(where);
      else if (op === "update") await t.update({ where, valuesSql: set });
      else await t.mergeInsert(on).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(decode(rows));
    }
    return {};
  },

  async optimize({ table }) {
    const t = await open(table);
    const s = await t.optimize();
    return {
      version: await t.version(),
      fragmentsRemoved: Number(s.compaction.fragmentsRemoved),
      fragmentsAdded: Number(s.compaction.fragmentsAdded),
    };
  },

  async create_index({ table, column, kind, partitions, subVectors }) {
    const make = indexKinds[kind];
    if (make === undefined) throw new Error(`this engine cannot build an index of kind ${kind}`);
    const t = await open(table);
    await t.createIndex(column, { config: make({ partitions, subVectors }), replace: true });
    return { version: await t.version() };
  },

  async indices({ table }) {
    const t = await open(table);
    const list = [];
    for (const i of await t.listIndices()) {
      const s = await t.indexStats(i.name);
      list.push({
        name: i.name,
        kind: i.indexType,
        columns: i.columns,
        indexedRows: Number(s?.numIndexedRows ?? 0),
        unindexedRows: Number(s?.numUnindexedRows ?? 0),
      });
    }
    return { indices: list };
  },

  async query({ table, version, columns, where, fts, knn, limit }) {
    let t = await open(table);
    if (version) {
      t = await (await connect(table)).openTable("t");
      await t.checkout(version);
    }
    let q = t.query();
    if (knn) {
      q = q.nearestTo(knn.vector).column(knn.column).nprobes(knn.nprobes);
      if (knn.refine) q = q.refineFactor(knn.refine);
      if (knn.ef) q = q.ef(knn.ef);
    }
    if (fts) q = q.fullTextSearch(fts.text, { columns: [fts.column] });
    if (where) q = q.where(where);
    if (columns) q = q.select(columns);
    if (limit) q = q.limit(limit);
    const plan = await q.explainPlan(true);
    const batches = [];
    const it = await q.nativeExecute();
    for (let b = await it.next(); b; b = await it.next()) batches.push(Buffer.from(b).toString("base64"));
    return { batches, plan };
  },

  async count({ table, where }) {
    return { rows: await (await open(table)).countRows(where) };
  },

  async version({ table }) {
    return { version: await (await open(table)).version() };
  },

  async restore({ table, version }) {
    const t = await open(table);
    await t.checkout(version);
    await t.restore();
    return { version: await t.version() };
  },

  async close({ table }) {
    tables.get(table)?.close();
    tables.delete(table);
    return {};
  },
};

for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let reply;
  try {
    const request = JSON.parse(line);
    const op = ops[request.op];
    if (op === undefined) throw new Error(`no such operation: ${request.op}`);
    reply = await op(request);
  } catch (e) {
    reply = { error: String(e?.message ?? e) };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
