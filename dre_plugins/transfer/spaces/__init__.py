"""Search spaces that differ: match their parameters, and convert between them."""
