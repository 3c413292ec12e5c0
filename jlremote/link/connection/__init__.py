"""The link's connection: made once for all commands, watched, and made again.

Read `supervisor` (the story), `dialer` (the login, and the end of what served a lost connection),
`liveness` (is it alive; sleep and networks of the laptop), `backoff` (pauses between attempts;
loops that last), `elevation` (the password of `sudo`), `login_look` (programs that only a login
shell finds).

A connection is alive when the host answers: paramiko's keepalive wants no reply, and `is_active()`
stays true for minutes after the peer died. A password of `sudo` is tried once, as hosts lock out a
user after three failures.
"""
