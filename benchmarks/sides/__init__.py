"""The sides: each module is one whole process, ``python -m benchmarks.sides.NAME WORKBOOK FORM``.

A side reads the workbook into the table that the form (a JSON file) names, in the database that DATABASE_URL names, or,
when it is a side that only reads, prints ``{"rows": n}``. The peers' modules run in the peers' environment and are
written the way their own documentation shows, with the quickest setting that was found.
"""
