"""Transfer from past tasks: metadata, their sources, and priors trained on them."""
