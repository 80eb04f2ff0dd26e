"""Search spaces that differ: what they have in common, how one is expressed in another."""
