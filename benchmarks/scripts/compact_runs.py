"""Write runs without configurations and with fewer digits: `compact_runs.py RUNS OUTPUT`.

What is left is enough for `dre-bench report`, and for `dre-bench run` to go on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dre_bench.reports.results import finished
from dre_bench.runs import Record, read_records

DROPPED = ("configurations", "warnings", "stats", "seconds")


def compact(record: Record) -> Record:
    """Return what a report needs of a record."""
    kept = {name: value for name, value in record.items() if name not in DROPPED}
    # A report shows three decimals of regrets that are below 1 where runs differ.
    kept["values"] = [float(f"{value:.8g}") for value in record["values"]]
    kept["ask_seconds"] = [round(seconds, 3) for seconds in record["ask_seconds"]]
    return kept


if __name__ == "__main__":
    source, output = map(Path, sys.argv[1:])
    lines = [json.dumps(compact(r), separators=(",", ":")) for r in finished(read_records(source))]
    output.write_text("\n".join(lines) + "\n")
