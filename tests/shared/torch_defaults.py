"""What a user may have changed of torch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_defaults(
    dtype: torch.dtype = torch.bfloat16, device: str | None = None
) -> Iterator[None]:
    """Set the default type and the default device for a while."""
    torch.set_default_dtype(dtype)
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
