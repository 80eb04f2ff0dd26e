"""The content of a safetensors file: tensors, and the texts of its header."""

from __future__ import annotations

import json

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor


def parsed(content: bytes) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the texts of the header and the tensors, on the CPU.

    No tensor is larger than what the content holds of it.

    Raises:
        SafetensorError: The content is damaged, or of another kind.
    """
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        texts = json.loads(content[8 : 8 + length]).get("__metadata__")
    except (KeyError, TypeError, ValueError, RuntimeError, RecursionError) as error:
        # What safetensors lets through: a dtype that torch does not have, for one.
        raise SafetensorError(f"{type(error).__name__}: {error}") from error
    return texts or {}, tensors
