"""Proposers: space-filling points, past studies, the ensemble and the universal prior.

To add one, write a class with the two methods of `Proposer` (`schedule.py`), give it turns there
and an entry in `PROPOSERS` of `surrogates.py`.
"""
