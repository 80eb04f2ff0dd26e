"""Check that a source distribution holds what is in git, and nothing else: check_sdist.py FILE."""

import subprocess
import sys
import tarfile

# What only a clone needs, and what only a distribution has.
LEFT_OUT = {".gitignore", "benchmarks/data/learner_evaluations/evaluations.npz"}
ADDED = {"PKG-INFO"}

with tarfile.open(sys.argv[1]) as archive:
    packed = {name.partition("/")[2] for name in archive.getnames()} - {""}
tracked = set(subprocess.check_output(["git", "ls-files"], text=True).splitlines())
missing, extra = tracked - packed - LEFT_OUT, packed - tracked - ADDED
assert not missing, f"not in the sdist, but in git: {sorted(missing)}"
assert not extra, f"in the sdist, but not in git: {sorted(extra)}"
print(f"{sys.argv[1]}: all of the {len(packed)} files")
