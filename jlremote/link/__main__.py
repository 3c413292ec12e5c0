"""`python -m jlremote.link HOST`: how a command starts the link."""

import sys

from jlremote.link.service.link_process import main

sys.exit(main())
