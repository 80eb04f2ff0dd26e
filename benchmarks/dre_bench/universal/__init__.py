"""How the universal prior is made: meta-training on synthetic tasks.

`tasks` are random functions on random spaces, `lessons` are what a search has seen of them, and
`training` takes one step on each. `dre-bench train-universal` writes the file.
"""
