"""What came out of benchmark runs: as text, as figures, as a page. `dre-bench report FILES…`.

`report` puts it together. `results` (regret curves of paired runs) and `real_studies` (figures of
studies that have none) read records, `published` curves that others published, all as frames of
pandas; `statistics` has the tests; `tables`, `words`, `figures` and `page` are how it looks.
"""
