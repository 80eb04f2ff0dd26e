"""Names of test cases."""

import re


def label_of(value: object) -> str:
    """Return what names a value in every process, without its address."""
    return re.sub(r" object at 0x[0-9a-f]+", "", str(value))
