"""One session: start it, open it, work in it, stop it.

Read `start` first, the story of `jlr start`. Then `open` (also what a new link restores), `stop`
with `losses` (what ends with it), and `further_ports`, `logs`, `shell`, `wait` and `restart`
(also `jlr start --renew`), a command each.

Decisions:

**What does `jlr stop` end?** The kernels, Jupyter and the local port; with `--container` also the
container; `jlr rm` deletes that. What works ends only with `--force`, also what another laptop
uses: Jupyter is asked for kernels before each stop, and the container for its processes. A process
works unless it is known to wait: what it does cannot be seen from outside, and a wrong refusal
costs a word, a wrong end a night.

**Why does a restored session keep its port?** The page in the browser is bound to it. A new link
forwards each session to the port in its record, and the page needs no new login.

**What if two starts of one session run at once?** The second one on this machine waits for a lock
(`start`), and then finds what the first has made. A session that already runs needs no lock.
"""
