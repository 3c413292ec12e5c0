"""The program `jlr`: its commands and its global options."""

from __future__ import annotations

import click

from jlremote import __version__
from jlremote.cli.invocation import Invocation, global_options
from jlremote.cli.lazy import LazyGroup

# name: where it is, and its line in the help. Nothing here is imported before it is called.
COMMANDS = {
    "start": ("sessions.start:start", "Start or reuse a session and open it in the browser."),
    "open": ("sessions.open:open_session", "Open a running session in the browser."),
    "url": ("sessions.open:url", "Print a session's URL and nothing else."),
    "list": ("sessions.sessions:list_sessions", "List the sessions, a line each."),
    "status": ("sessions.sessions:status", "Show one session in full."),
    "logs": (
        "sessions.logs:logs",
        "Show the log of a session's Jupyter, or a job's output.",
    ),
    "shell": ("work.shell:shell", "Open a terminal in a session's container."),
    "run": ("work.run:run", "Run a command as a job, which outlasts the connection."),
    "runs": ("work.jobs:runs", "List the jobs, a line each."),
    "attach": ("work.jobs:attach", "Show a job again, to its end."),
    "stop": ("sessions.stop:stop", "Stop a session or a job; the container too, if you say so."),
    "forward": ("work.forward:forward", "Forward a further port of a session."),
    "mount": ("work.mount:mount", "Show a folder of the host as one of this machine."),
    "unmount": ("work.mount:unmount", "Take such a folder away again."),
    "gpus": ("host.gpus:gpus", "Show who uses which GPU of a host."),
    "images": ("images.images:images", "List the images on a host."),
    "pull": ("images.registry:pull", "Pull an image on a host."),
    "build": ("images.images:build", "Build an image on a host, from a folder on this machine."),
    "save": ("images.images:save", "Save a session's container as an image."),
    "push": ("images.registry:push", "Push an image of a host to its registry."),
    "login": ("images.registry:login", "Let a host use a registry with your key."),
    "doctor": ("host.doctor:doctor", "Find out what is wrong, and what to do about it."),
    "disconnect": (
        "host.disconnect:disconnect",
        "End the connection to a host; work goes on.",
    ),
    "forget": ("host.forget:forget", "Delete the passwords that are remembered for a host."),
    "config": ("machine.config:config", "Show the settings that hold, and where each came from."),
    "demo": ("machine.demo:demo", "Try jlr on this machine, without a server."),
    "completion": ("machine.completion:completion", "Print the completion script for your shell."),
}


EXAMPLES = (
    "jlr start dgx cont1                    # JupyterLab in container cont1 on dgx",
    "jlr start dgx cont1 --image me/torch   # created from the image if there is none",
    "jlr open                               # the browser again",
    "jlr stop                               # stop it; the container stays",
    "jlr demo                               # try it without a server",
)
EXIT_CODES = (
    "  0  done                  5  host unreachable",
    "  1  expected failure      6  no such session, container, image or file",
    "  2  usage                 7  busy: kernels, a GPU, a port",
    "  3  a bug of ours       130  interrupted",
    "  4  authentication or host key",
)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    sections={"Examples": EXAMPLES, "Exit codes": EXIT_CODES},
    params=global_options(),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def jlr(context: click.Context) -> None:
    """JupyterLab of a container on a remote GPU host, in your browser.

    HOST is whatever `ssh HOST` takes. SESSION is the container's name, or `host/name`; left out, it
    is the only session or the latest. Global options may also follow the command.
    """
    context.ensure_object(Invocation)
