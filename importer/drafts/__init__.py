"""Drafts to be reviewed: which heading is which column, and a form from a workbook. Nothing here is used unseen.

```
workbook ── headings and a sample ──┐
form or table ── wanted columns ────┴─► scores ─► one to one ─► Suggestion (pairs, confidence, what was not matched)
workbook ── headings, kinds of cells ─► form_from ─► a form as data, with remarks on what was guessed
```

A confidence is between 0 and 1 and made of two parts: how near the titles are (as people read them: case, spaces,
accents, word order and abbreviations make little difference) and whether the values of the sample fit the column's
type and rules. Below the bar nothing is proposed: a wrong proposal that is nodded through costs more than a blank.

Not guaranteed: that a type drafted from a sample holds for the rows behind it; the check says what does not.
"""

from importer.drafts.headings import Heading, read_headings
from importer.drafts.sample_form import DraftForm, draft_form
from importer.drafts.suggestion import BAR, Pair, Suggestion, Wanted, suggest, wanted_by

__all__ = [
    "BAR",
    "DraftForm",
    "Heading",
    "Pair",
    "Suggestion",
    "Wanted",
    "draft_form",
    "read_headings",
    "suggest",
    "wanted_by",
]
