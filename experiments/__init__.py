"""Experiments: quality, speed, and the tables and figures of the paper.

Every experiment is a command, ``python -m experiments.<name>``, and is not part of the installed
package. A measurement is a cell: a table, a model, a seed and settings (``results.Cell``). The
results of an experiment are one file of JSON lines in ``results/``, and every line names the code
that measured it. ``runner`` measures the cells that a file does not have yet, ``tables`` has the
tables, ``models`` the models and ``rivals`` those of other packages. ``pages`` writes the tables of
the documentation from the results.
"""
