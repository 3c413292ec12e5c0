"""The program `jlr`: its commands and its global options."""

from __future__ import annotations

import click

from jlremote import __version__
from jlremote.cli.command import LazyGroup
from jlremote.cli.invocation import Invocation, global_options

# By heading and name: where the command is, and its line in the help. A command is imported only
# when it is called.
COMMANDS = {
    "Sessions": {
        "start": ("sessions.start:start", "Start or reuse a session and open it in the browser."),
        "open": ("sessions.open:open_session", "Open a running session in the browser."),
        "url": ("sessions.open:url", "Print a session's URL and nothing else."),
        "list": ("sessions.sessions:list_sessions", "List the sessions, one per line."),
        "status": ("sessions.sessions:status", "Show one session."),
        "logs": ("sessions.sessions:logs", "Show the log of a session or the output of a job."),
        "output": ("sessions.output:output", "Show what the cells of a session printed."),
        "stop": ("sessions.stop:stop", "Stop a session or a job, and on request its container."),
        "renew": ("sessions.stop:renew", "Queue a successor of a session's job on a cluster."),
        "restart": ("sessions.stop:restart", "Stop a session and start it again."),
    },
    "Work there": {
        "shell": ("work.shell:shell", "Open a terminal in a session's container."),
        "run": ("work.run:run", "Run a command or notebook as a job that outlasts the connection."),
        "runs": ("work.jobs:runs", "List the jobs, one per line."),
        "attach": ("work.jobs:attach", "Show a job's output again, to its end."),
        "lab": ("work.clients:lab", "Run the JupyterLab of this machine on a session's kernels."),
        "kernels": ("work.clients:kernels", "Install a session's kernels in the Jupyter here."),
        "forward": ("work.forward:forward", "Forward a further port of a session."),
        "cp": ("work.files:cp", "Copy files between this machine and a session."),
        "mount": ("work.files:mount", "Mount a folder of the host on this machine."),
        "unmount": ("work.files:unmount", "Unmount a folder mounted by `jlr mount`."),
    },
    "Editors and ssh": {
        "code": ("work.clients:code", "Open an editor of this machine on a session's folder."),
        "ssh-config": (
            "work.clients:ssh_config",
            "Let ssh and editors reach sessions as NAME.jlr.",
        ),
        "proxy": ("work.clients:proxy", "Connect an ssh client with a session; ssh runs it."),
    },
    "Images": {
        "images": ("images:images", "List the images on a host."),
        "pull": ("registry:pull", "Pull an image on a host."),
        "build": ("images:build", "Build an image on a host from a local folder."),
        "save": ("images:save", "Save a session's container as an image."),
        "push": ("registry:push", "Push an image of a host to its registry."),
        "rmi": ("images:rmi", "Remove images from a host."),
        "prune": ("images:prune", "Remove the images without a name from a host."),
        "login": ("registry:login", "Let a host use a registry with your key."),
    },
    "Host": {
        "gpus": ("host:gpus", "Show the GPUs of a host and their users."),
        "doctor": ("host:doctor", "Find out what is wrong, and what to do about it."),
        "disconnect": ("host:disconnect", "End the connection to a host."),
        "forget": ("host:forget", "Delete the stored passwords of a host."),
    },
    "This machine": {
        "config": ("machine:config", "Show the settings and the source of each."),
        "notify": (
            "machine:notify",
            "Show a notice on the desktop of this machine, to try `--notify`.",
        ),
        "demo": ("machine:demo", "Try jlr on this machine, without a server."),
        "completion": ("machine:completion", "Print the completion script for your shell."),
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
    "130  interrupted",
)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    closing={"Examples": EXAMPLES, "Exit codes": EXIT_CODES},
    params=global_options(),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def jlr(context: click.Context) -> None:
    """JupyterLab of a container on a remote GPU host, in your browser.

    HOST is any host that `ssh HOST` accepts. SESSION is a container's name or `host/name`; the
    default is the only session or the latest. Options may also follow the command. With --json an
    error is an object on stderr, too: `error`, `hint` and `exit`, the exit code.

    `jlr help COMMAND` shows a command's help. `ls` and `ps` stand for `list`, `rm` for
    `stop --remove`.
    """
    context.ensure_object(Invocation)
