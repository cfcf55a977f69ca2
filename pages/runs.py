"""Runs: find a recording among all of them, open it, go on with it, download or delete it."""

from __future__ import annotations

from pages.components import entry, runs_table

entry.through_app()

# before the rows are read: a job that ends in between shows its verdict at the next run of the page, not never
runs_table.jobs()
rows = runs_table.all_rows()
if rows:
    chosen = runs_table.table(runs_table.filtered(rows))
    if chosen is not None:
        runs_table.actions(chosen)
runs_table.how_to_begin(rows)
