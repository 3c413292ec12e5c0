"""The link's connection: made once for all commands, watched, and made again.

Read `supervisor` (the story), `dialer` (the login), `liveness` (is it alive; sleep and networks of
the laptop), `backoff` (pauses between attempts; loops that last), `elevation` (the password of
`sudo`), `login_look` (programs that only a login shell finds), `host_side` (the end of what served
a lost connection).

Decisions:

When is a connection alive? When the host answers. paramiko's keepalive wants no reply, and
`is_active()` stays true for minutes after the peer died. So `keepalive@openssh.com` is sent with a
reply wanted and a deadline on the monotonic clock. A jump between boot time and monotonic time is a
wake from sleep.

When is the password of `sudo` asked for? Before the first script that needs it; whether one is
needed tells `sudo -n -k docker --version`. It is tested with `sudo -S`, which cannot try a password
twice: hosts lock out a user after three failures. sudo's own words tell that it is wrong by now,
and the next command asks again. A script that only looks up whose containers use the GPUs never
asks: it gets the password that the link or the keychain has, else it runs `sudo -n`.
"""
