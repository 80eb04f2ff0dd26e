"""What came out of benchmark runs: as text, as figures, as a page. `dre-bench report FILES…`.

`report` puts it together. `results` (regret curves of paired runs) and `real_studies` (figures of
studies that have none) read records as frames of pandas; `statistics` has the tests; `part`,
`tables`, `figures` and `page` are how it looks.
"""
