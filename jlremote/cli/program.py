"""The program `jlr`: its commands and its global options."""

from __future__ import annotations

import click

from jlremote import __version__
from jlremote.cli.invocation import Invocation, global_options
from jlremote.cli.lazy_group import LazyGroup

# By heading and name: the module in `commands`, none for a group, and the line in the help; it is
# imported only when the command is called.
COMMANDS = {
    "Sessions": {
        "start": ("starting", "Start or reuse a session and open it."),
        "open": ("clients", "Open a running session in the browser."),
        "url": ("clients", "Print a session's URL and nothing else."),
        "list": ("viewing", "List the sessions, or show one of them."),
        "logs": ("viewing", "Show the log of a session or a job."),
        "output": ("viewing", "Show what the cells of a session printed."),
        "stop": ("stopping", "Stop a session; its container runs on."),
        "restart": ("stopping", "Stop a session and start it again."),
        "rm": ("stopping", "Stop a session and delete its container."),
    },
    "Work there": {
        "shell": ("attaching", "Open a terminal in a session's container."),
        "exec": ("executing", "Execute code in a kernel of a session."),
        "run": ("running", "Run a command or notebook as a lasting job."),
        "job": ("", "List, show, stop and delete jobs."),
        "wait": ("attaching", "Wait until jobs, runs or sessions are done."),
        "cp": ("ports_and_files", "Copy files to and from a session."),
        "sync": ("ports_and_files", "Make a folder there like this one."),
        "mount": ("ports_and_files", "Mount a folder of the host on this machine."),
        "forward": ("ports_and_files", "Forward a further port of a session."),
        "local": ("", "Use a session's kernels in Jupyter here."),
        "code": ("clients", "Open your editor on a session's folder."),
    },
    "Host and this machine": {
        "image": ("", "Pull, build, save, push and remove images."),
        "gpus": ("inspection", "Show the GPUs of a host and their users."),
        "doctor": ("inspection", "Find out what is wrong, and how to mend it."),
        "disconnect": ("stopping", "End the connection to a host."),
        "config": ("", "Show and change settings; ssh to sessions."),
        "agent": ("", "Tell a coding agent how to use jlr."),
        "demo": ("this_machine", "Try jlr on this machine, without a server."),
        "completion": ("this_machine", "Print the completion script for your shell."),
    },
    "": {
        "proxy": ("clients", "Connect an ssh client with a session; ssh runs it."),
        "mcp": ("agents", "Give an agent tools for a session; its program runs this."),
    },
}
GROUPS = {
    "job": {
        "list": ("attaching", "List the jobs, one per line."),
        "logs": ("viewing", "Show the output of a job."),
        "attach": ("attaching", "Show a job's output again, to its end."),
        "stop": ("stopping", "Stop a job; its output stays."),
        "rm": ("stopping", "Stop a job and delete it with its output."),
    },
    "image": {
        "list": ("images_and_registries", "List the images on a host."),
        "pull": ("images_and_registries", "Pull an image on a host."),
        "build": ("images_and_registries", "Build an image on a host from a folder."),
        "save": ("images_and_registries", "Save a session's container as an image."),
        "push": ("images_and_registries", "Push an image of a host to its registry."),
        "rm": ("images_and_registries", "Remove images from a host."),
        "prune": ("images_and_registries", "Remove untagged (dangling) images from a host."),
        "login": ("images_and_registries", "Let a host use a registry with your key."),
    },
    "local": {
        "lab": ("clients", "Run JupyterLab here on a session's kernels."),
        "kernels": ("clients", "Install a session's kernels in Jupyter here."),
    },
    "agent": {"install": ("agents", "Write a skill file for a coding agent, or print it.")},
    "config": {
        "show": ("this_machine", "Show the settings and the source of each."),
        "set": ("this_machine", "Change a setting."),
        "notify": ("this_machine", "Show a notice on the desktop, to try `--notify`."),
        "ssh": ("clients", "Let ssh reach sessions as NAME.jlr."),
    },
}

EXAMPLES = (
    "jlr start dgx cont1                    # JupyterLab in container cont1 on dgx",
    "jlr start dgx cont1 --image me/torch   # create it if it is missing",
    "jlr open                               # open the browser again",
    "jlr stop                               # stop it; the container keeps running",
    "jlr demo                               # try it without a server",
)
EXIT_CODES = (
    "  0  done",
    "  1  expected failure",
    "  2  usage",
    "  3  bug in jlr",
    "  4  authentication or host key",
    "  5  host unreachable",
    "  6  no such session, container, image or file",
    "  7  busy: kernels, a GPU, a port",
    "124  not in time: wait --timeout",
    "130  interrupted",
)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    groups=GROUPS,
    closing={"Examples": EXAMPLES, "Exit codes": EXIT_CODES},
    params=global_options(),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def jlr(context: click.Context) -> None:
    """JupyterLab of a container on a remote GPU host, in your browser.

    HOST is any host that `ssh HOST` accepts, SESSION is NAME or HOST/NAME, by default the latest.
    Each stands for the other where only one is meant; of a host and a session of one name each
    command takes the kind that it asks for, and HOST/ is the host. Options may also follow the
    command. With --json an error is an object on stderr, too: `error`, `hint` and `exit`, the exit
    code.

    `jlr help COMMAND` shows a command's help. `ls` and `ps` stand for `list`, `runs` for
    `job list`, `images` for `image list`.
    """
    context.ensure_object(Invocation)
