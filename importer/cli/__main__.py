"""`python -m importer.cli` is `rowlease`."""

import sys

from importer.cli import main

sys.exit(main())
