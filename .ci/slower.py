"""Write `tests/slower.txt`: test functions whose cases take more than `SECONDS` on average.

Usage: slower.py REPORT, where pytest wrote the times with `--junitxml REPORT`.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree

SECONDS = 0.4  # on an idle machine

seconds = defaultdict(list)
for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
    # pytest writes "tests.space.test_domains.TestFloat" for a test in a class.
    place, *classes = re.split(r"\.(?=[A-Z])", case.attrib["classname"])
    test = "::".join([f"{place.replace('.', '/')}.py", *classes, case.attrib["name"]])
    seconds[test.split("[")[0]].append(float(case.attrib["time"]))
slower = sorted(test for test, of_cases in seconds.items() if fmean(of_cases) > SECONDS)
Path("tests/slower.txt").write_text("\n".join(slower) + "\n")
