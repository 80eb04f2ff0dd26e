"""The universal prior: a network that was meta-trained once, for any search space; inference only.

`network` reads the trials of a task and proposes a mixture of Gaussian `processes`; `targets` says
how values are read, `file` how the network is stored. `prior.safetensors` ships with the package;
`dre-bench train-universal` of the benchmarks has made it, and makes others.
"""
