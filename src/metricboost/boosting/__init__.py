"""The mathematics of sDist, one room per object; ``loop.py`` is Algorithm 1."""
