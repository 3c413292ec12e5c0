"""Parts that the doctor's tests share."""

from tests.runtimes.conftest import environment as environment  # a JupyterLab on the host itself
