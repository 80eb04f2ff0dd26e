"""The universal prior: a network that was meta-trained once, for any search space; inference only.

`network` reads the trials of a task and outputs a mixture of Gaussian `processes`. `targets` has
the transformation of values, `file` the storage. `prior.safetensors` ships with the package;
`dre-bench train-universal` of the benchmarks trained it, and trains others.
"""
