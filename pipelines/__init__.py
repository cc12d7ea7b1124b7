"""Dagster drives the importer: forms are assets, sensors start imports, people launch and watch them in its pages.

```
forms ──► assets, checks            definitions   everything, listed by hand in one place
inbox, due jobs, lost runs ──► sensors ──► runs   asset_jobs    import_workbook, process_imports, retention, check_forms
schedules ──► runs                                importing     one import inside a run: progress, materialization
                                                  shown         what people see of an import
                                                  dev           `make dev`
```

This package translates. It calls the front door `importer` and holds neither SQL nor import logic: what makes a retry
safe, a kill harmless and a file imported once is the importer's own, whoever calls it. A run that dies leaves the job
to whoever claims it next; the sensors see to it that somebody does.
"""
