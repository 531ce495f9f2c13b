"""The paper's tables and figures, computed again: ``metricboost reproduce``.

A study is cut into cells (``_cells``), each measured in a process of its own (``_running``) and
kept in a file (``_results``). Where the rows come from is in ``_sources``, what learns from them in
``_methods`` and ``_protocol``, what is measured in ``_tasks``; which cells make up a table or a
figure is in ``_experiments``. The page (``_page``) has tables (``_tables``, over ``_columns``),
beside what the paper prints (``_published``), figures (``_pictures``, drawn by ``_figures``) and
words (``prose.md``), in two forms (``_document``).
"""
