"""The last states of jobs, noted in the jobs' folders by the first command that sees them.

A job writes down its own end, in `exit`, unless its node fails or it is killed. Then the scheduler
is asked, and `ending` gets its last state, the moment and the scheduler's exit code, divided by
`|`. After an end by a signal or by the scheduler the accounting is asked once, which knows who
cancelled a job; `accounted` says so. The end of a running job's time limit is kept in `until`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.place.clusters.scheduler import FOLLOWS
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.clusters.slurm_lists import ending
from jlremote.place.host.contract import PRINT_FIELD
from jlremote.place.host.shell_text import pause
from jlremote.text import one_line
from jlremote.untrusted import count

_LIVE = "|".join(SLURM.live_states)
_SHOWN = 300  # letters of a log's last line

# The clocks of login node and node may differ by less than this. A job that waits although it has
# begun longer ago was put back into the queue.
_SKEW_SECONDS = 60
# On a full disk a file that says nothing would stand for an end that nothing tells any more.
_WRITE = """\
write() { printf '%s\\n' "$2" >"$1.$$" && mv -f "$1.$$" "$1" || rm -f "$1.$$"; }
"""
_QUEUE = f"""\
{_WRITE}long_ago=$(($(date +%s) - {_SKEW_SECONDS}))
queue=$(
QUEUE
2>&1
) || queue="no whole answer (status $?): $(printf %s "$queue" | tr '\\n\\037' '  ')"
printf '%s\\n' "$queue"
separator=$(printf '{PRINT_FIELD}')
printf '%s\\n' "$queue" | while IFS=$separator read -r id name state reason start end rest; do
  found=ROOT/${{name%.jlr*}}
  case $id in *_*) found=$found-${{id#*_}};; esac
  [ -d "$found" ] || found=${{found%{FOLLOWS}}}
  mark= known=
  {{ read -r mark <"$found/mark"; read -r known <"$found/id"; }} 2>/dev/null
  [ -n "$known" ] || [ "$mark" != "${{name##*.jlr}}" ] ||
    {{ known=$id; printf '%s\\n' "$id" >"$found/id"; }}
  [ "$known" = "$id" ] || continue
  case $state in
    WAITING)
      if read -r began rest <"$found/began" && [ "$began" -lt "$long_ago" ]; then
        rm -f "$found/began" "$found/probe" "$found/until"
      fi 2>/dev/null
      continue;;
    LIVE) [ ! -e "$found/began" ] || printf '%s\\n' "$end" >"$found/until"; continue;;
  esac
  case $reason in None|N/A|NonZeroExitCode|'(null)'|'') ;; *) state="$state ($reason)";; esac
  [ -e "$found/exit" ] || [ -e "$found/ending" ] ||
    write "$found/ending" "$state|$(date +%s)"
done
"""
# The accounting may know a little later than the queue that a job is over.
_ACCOUNT = f"""\
{_WRITE}account() {{
  code=0; read -r code rest <"$directory/exit"
  [ -e "$directory/ending" ] || [ "$code" -gt 128 ] || return
  [ ! -e "$directory/accounted" ] || return
  id=$(cat "$directory/id")
  for jlr_try in 1 2 3; do
    last=$(
ACCOUNTED
    )
    case ${{last%%|*}} in LIVE) {pause(0.5)};; *) break;; esac
  done
  case ${{last%%|*}} in
    LIVE) return;;
    ?*) reason=$(sed -n "s/^${{last%%|*}}\\( ([^|]*)\\)|.*/\\1/p" "$directory/ending" 2>/dev/null)
      write "$directory/ending" "${{last%%|*}}$reason|${{last#*|}}";;
  esac
  : >"$directory/accounted"
}}
"""
# The scheduler is asked about one job at most this often, and not waited for as long as elsewhere:
# a page that waits is answered by the last state that is known.
_AGAIN_SECONDS = 10
SHORT_SECONDS = 5
_NOTE = f"""\
if [ -e "$directory/began" ] && [ ! -e "$directory/exit" ] && [ ! -e "$directory/ending" ]; then
  now=$(date +%s) looked=0; read -r looked <"$directory/looked"
  if [ "$((now - looked))" -ge {_AGAIN_SECONDS} ]; then
    echo "$now" >"$directory/looked"
    (
ASK
    ) >/dev/null
  fi
fi
account
"""


@dataclass(frozen=True)
class JobEnding:
    """What the scheduler knows of a job's end; empty where it knows nothing."""

    state: str = ""
    moment: str = ""
    code: str = ""

    def how(self, log: str, *, written: bool, began: bool) -> str | None:
        """Say how a job ended in the scheduler's words, `None` if its own exit code says it all.

        Where none was `written`, nothing of it has run if it had not begun: then `log`, the
        scheduler's own, says more.
        """
        told = ending(self.state, log)
        if told or written:
            return told
        code, _, signal = self.code.partition(":")
        ways = (("exit code", code), ("signal", signal))
        exits = [f"{what} {number}" for what, number in ways if count(number)]
        exited = f" with {' and '.join(exits)}" if exits else ""
        told = f"{SLURM.name} says `{one_line(self.state)}`{exited}"
        if began:
            return f"{told}, and it left no exit code"
        said = one_line(log.strip().rpartition("\n")[2])[-_SHOWN:]
        words = f"; its last output: {said}" if said else ""
        return f"{told}: it ended before its command began{words}"


def read_ending(text: str) -> JobEnding:
    """Return what a file `ending` says, or what the accounting printed."""
    return JobEnding(*text.strip().split("|")[:3])


def ask(root: str, seconds: int | None = None) -> str:
    """Return shell text that prints the queue, and notes the last states of jobs that are over.

    `root` is shell text, the folder of the jobs' folders; `seconds` limit the scheduler's answer.
    """
    queue = _QUEUE.replace("QUEUE\n2>&1\n", f"{SLURM.queue(seconds)} 2>&1\n")
    queue = queue.replace("WAITING", "|".join(SLURM.waiting_states))
    return queue.replace("ROOT", root).replace("LIVE", _LIVE)


def account() -> str:
    """Return the shell function `account`, which asks the accounting about `$directory`'s job."""
    text = _ACCOUNT.replace("ACCOUNTED\n", SLURM.accounted('"$id"'))
    return text.replace("LIVE", _LIVE)


def note(root: str) -> str:
    """Return shell text that notes the end of the job of `$directory` once it is over."""
    return account() + _NOTE.replace("ASK\n", ask(root, SHORT_SECONDS))
