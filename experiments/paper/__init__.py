"""The tables and figures of the sDist paper, computed again: ``make reproduce``.

``studies`` lists the cells of each table and figure, ``tasks`` has the functions that measure a
cell, and ``protocol`` is sDist as the paper tunes it. ``page`` makes the page from the results:
tables (``tables``, with ``columns``) with the numbers of the paper (``published``), the causes of
differences (``causes``), figures (``pictures``, drawn by ``figures``) and text (``prose.md``).
"""
