"""The tables and figures of the sDist paper, computed again: ``make reproduce``.

``studies`` lists the cells of each table and figure, ``tasks`` says what is measured in one, and
``protocol`` is sDist as the paper tunes it. ``page`` makes the page from the results: tables
(``tables``, over ``columns``) beside what the paper prints (``published``), what explains a
difference (``causes``), figures (``pictures``, drawn by ``figures``) and words (``prose.md``).
"""
