"""Runs one compact_files() of pylance and prints what it cost.

python stock.py TABLE [COMPACTION_MODE]
"""

import json
import resource
import sys
import time


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


import lance  # noqa: E402

ds = lance.dataset(sys.argv[1])
ds.count_rows()
options = {"compaction_mode": sys.argv[2]} if len(sys.argv) > 2 else {}
cpu_before, start = cpu(), time.perf_counter()
stats = ds.optimize.compact_files(**options)
wall, used = time.perf_counter() - start, cpu() - cpu_before
print(
    json.dumps(
        {
            "wall_ns": int(wall * 1e9),
            "cpu_ns": int(used * 1e9),
            "fragments_removed": stats.fragments_removed,
            "fragments_added": stats.fragments_added,
        }
    )
)
