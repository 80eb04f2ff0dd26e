"""The proposers of configurations: space-filling points, the ensemble and the universal prior.

To add a proposer, write a class with the two methods of `Proposer` (`requests.py`), give it turns
in `schedule.py` and an entry in `MODELS` of `surrogates.py`.
"""
