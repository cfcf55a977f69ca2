"""Compare: two runs from the same initial answers side by side, and every method on their question."""

from __future__ import annotations

from pages.components import beside, entry, growth_box, missing, pairing, theme

entry.through_app()
theme.apply()
if chosen := pairing.pair():
    beside.head(chosen)
    beside.both(chosen)
    beside.parted(chosen)
    missing.offers(chosen)
    growth_box.section(beside.table(chosen))
