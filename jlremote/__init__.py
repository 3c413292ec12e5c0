"""jlr: JupyterLab of a container on a remote GPU host, in your browser, with one command."""

__version__ = "0.1.0"
