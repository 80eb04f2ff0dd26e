"""The ranking ensemble of a study: its members, their fit, and what they predict."""
