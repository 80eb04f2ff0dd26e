"""Transfer from past tasks: metadata, where it comes from, and what is learnt from it."""
