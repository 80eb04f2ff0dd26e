"""Try many more cases than CI does: `make properties CASES=100000 JOBS=2`.

Each job is a pytest of its own with its own seed, so that its cases are its own. A failure prints
the case. Cases that failed once belong into a plain test.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cases import FACTOR

HERE = Path(__file__).parent
# Of all properties together, as their `@cases` say.
CASES_IN_CI = sum(
    int(number)
    for path in HERE.glob("test_*.py")
    for number in re.findall(r"^@cases\((\d+)\)", path.read_text(encoding="utf-8"), re.M)
)


def run(seed: int, n_cases: int) -> tuple[int, str]:
    """Run all properties; return how many cases were tried, and what went wrong."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"),
            *("--show-capture=no", "--timeout=0", f"--hypothesis-seed={seed}", str(HERE)),
        ],
        env={**os.environ, FACTOR: str(max(1.001, n_cases / CASES_IN_CI)), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    counted = re.search(r"^property cases: (\d+)", done.stdout, re.M)
    return int(counted[1]) if counted else 0, done.stdout if done.returncode else ""


def main() -> int:
    """Run jobs until there are cases enough; return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="of the first job")
    parser.add_argument("--batch", type=int, default=2000, help="cases of one job")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + -(-options.cases // options.batch))
    began, total, n_failed = time.monotonic(), 0, 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for seed, (n, problem) in zip(
            seeds, pool.map(lambda seed: run(seed, options.batch), seeds), strict=True
        ):
            total += n
            n_failed += bool(problem)
            minutes = (time.monotonic() - began) / 60
            print(f"seed {seed}: {n} cases, {total} in {minutes:.1f} minutes", flush=True)
            if problem:
                print(problem, flush=True)
    print(f"{total} cases, {n_failed} of {len(seeds)} jobs failed")
    return int(n_failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
