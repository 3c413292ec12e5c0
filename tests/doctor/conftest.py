"""Parts that the doctor's tests share."""

from tests.runtimes.test_bare import environment as environment  # a JupyterLab on the host itself
