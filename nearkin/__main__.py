"""``python -m nearkin`` is ``nearkin``."""

import sys

from nearkin.cli import main

sys.exit(main())
