"""Write `tests/slower.txt`: test functions whose cases take more than `SECONDS` on average.

Usage: slower.py REPORT, where pytest wrote the times with `--junitxml REPORT`.
"""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree

SECONDS = 0.4  # on an idle machine

seconds = defaultdict(list)
for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
    file, name = case.attrib["classname"].replace(".", "/"), case.attrib["name"]
    seconds[f"{file}.py::{name.split('[')[0]}"].append(float(case.attrib["time"]))
slower = sorted(test for test, of_cases in seconds.items() if fmean(of_cases) > SECONDS)
Path("tests/slower.txt").write_text("\n".join(slower) + "\n")
