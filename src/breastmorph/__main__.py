"""``python -m breastmorph``: the command where its script is not on the path."""

import sys

from breastmorph.cli import main

sys.exit(main())
