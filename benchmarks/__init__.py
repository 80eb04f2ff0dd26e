"""Programs that make data for benchmarks and priors; the package never imports them."""
