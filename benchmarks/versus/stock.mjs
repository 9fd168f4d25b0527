// Runs one optimize() of @lancedb/lancedb and prints what it cost.
//
//   node stock.mjs ENGINE_DIR TABLE
import { createRequire } from "node:module";
import path from "node:path";

const [, , engine, table] = process.argv;
const lancedb = createRequire(path.resolve(engine, "stock.js"))("@lancedb/lancedb");
const t = await (await lancedb.connect(path.dirname(table))).openTable(path.basename(table, ".lance"));
await t.countRows();
const cpu = process.cpuUsage();
const start = process.hrtime.bigint();
const stats = await t.optimize();
const wall = process.hrtime.bigint() - start;
const used = process.cpuUsage(cpu);
console.log(JSON.stringify({
  wall_ns: Number(wall),
  cpu_ns: (used.user + used.system) * 1000,
  fragments_removed: Number(stats.compaction.fragmentsRemoved),
  fragments_added: Number(stats.compaction.fragmentsAdded),
}));
