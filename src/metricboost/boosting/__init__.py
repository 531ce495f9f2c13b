"""Algorithms 1 and 2: the boosting loop, with one module for every mathematical object."""
