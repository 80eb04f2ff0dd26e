"""Proposers: space-filling points, past studies, the ensemble and the universal prior."""
