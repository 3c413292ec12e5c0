"""A link that pauses a tenth as long as it should: `brisk_link.py HOST [SSH_CONFIG]`.

For tests that drop hundreds of connections, some of them as soon as they are there: that counts as
no failed attempt and as no flapping either. Nothing else is different.
"""

from jlremote.link.connection import backoff
from jlremote.link.service import link_process

backoff.FIRST_PAUSE /= 10
backoff.SHORTEST_PAUSE /= 10
backoff.STEADY_SECONDS = 0
link_process.main()
