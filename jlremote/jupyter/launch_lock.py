"""The lock of a session's launch, and the look for servers that are starting, as text for `sh`.

A launch that finds another one under way, or a Jupyter that a person or the container's own command
began a moment ago, waits for that server and launches none.

The lock is a symbolic link `launching-NUMBER` in the session's folder, made in one step. Its target
names the shell that launches, by boot, pid and start time (see proc(5)), so it dies with its owner.
Of several the highest number counts: to delete a dead one would be a race. An owner that launches
nothing gives the lock back: its link gets a target that is no process, again in one step.
"""

from __future__ import annotations

from jlremote.place.runtimes.runtime import Runtime

# The longest wait for another launch, and for a Jupyter that a person started.
_UNDER_WAY_SECONDS = 120
_STARTING_SECONDS = 60
_TRIES = 20
_CLOCK_TICKS = 100  # a second: USER_HZ, the same on all architectures that run containers

# A server's program among the first words of a command line, or a wrapper that will run one: an
# init, an image's entrypoint, `sh -c`. The `jupyter` command becomes the program that it names.
_WORDS = 8
_SERVER = (
    "(^|[ /])(jupyter[-_ ](lab|labhub|notebook|nbclassic|server)|jupyterhub-singleuser|"
    r"start-(notebook|singleuser)(\.sh|\.py)?|-m (jupyterlab|notebook|nbclassic))( |$)"
)
# On a shared host only a server with the session's own folder counts.
_OF_SESSION = """\
tr '\\0' '\\n' <"$1/environ" 2>/dev/null | grep -qxF "JUPYTER_RUNTIME_DIR=$directory/runtime\""""


def functions(runtime: Runtime) -> str:
    """Return shell functions that need `$directory`.

    `lock_held` says whether a launch is under way, and sets `holder`; `take_lock` takes the lock
    for the launch `$launch`, or fails; `give_lock_back` is for one that launches nothing;
    `is_starting` says whether a server of this user is starting.
    """
    return _FUNCTIONS.replace("OF_SESSION", ":" if runtime.has_containers else _OF_SESSION)


# `identify` sets `process` and its `age` in seconds; it fails for one that has ended.
_FUNCTIONS = f"""\
{{ read -r boot </proc/sys/kernel/random/boot_id; }} 2>/dev/null
identify() {{
  {{ read -r stat <"/proc/$1/stat"; }} 2>/dev/null || return
  set -- "${{stat%% *}}" ${{stat##*) }}
  [ "$2" != Z ] || return
  process=$boot:$1; shift 20; process=$process:$1
  read -r uptime nothing </proc/uptime
  age=$((${{uptime%%.*}} - $1 / {_CLOCK_TICKS}))
}}
last_lock() {{
  number=0
  for lock in "$directory"/launching-*; do
    [ ! -L "$lock" ] || [ "${{lock##*-}}" -le "$number" ] || number=${{lock##*-}}
  done
}}
lock_held() {{
  last_lock
  holder=$(readlink "$directory/launching-$number") || return
  pid=${{holder#*:}}; pid=${{pid%%:*}}
  identify "$pid" && [ "$process" = "${{holder%:*}}" ] && [ "$age" -lt {_UNDER_WAY_SECONDS} ]
}}
take_lock() {{
  tries=0
  identify self || return
  me=$process:$launch
  until lock_held; do
    own=$((number + 1)) tries=$((tries + 1))
    [ "$tries" -lt {_TRIES} ] || exit 1
    ln -s "$me" "$directory/launching-$own" 2>/dev/null || continue
    last_lock
    if [ "$number" = "$own" ]; then
      for lock in "$directory"/launching-*; do [ "${{lock##*-}}" = "$own" ] || rm -f "$lock"; done
      return 0
    fi
    rm -f "$directory/launching-$own"
  done
  return 1
}}
give_lock_back() {{
  ln -s none "$directory/returned-$launch" &&
    mv -f "$directory/returned-$launch" "$directory/launching-$own"
}}
of_session() {{ OF_SESSION; }}
is_starting() {{
  for each in /proc/[0-9]*; do
    [ -r "$each/environ" ] && identify "${{each##*/}}" && [ "$age" -lt {_STARTING_SECONDS} ] &&
      of_session "$each" && tr '\\0\\n' '  ' <"$each/cmdline" 2>/dev/null |
      cut -d ' ' -f 1-{_WORDS} | grep -qE '{_SERVER}' && return
  done
  return 1
}}
"""
