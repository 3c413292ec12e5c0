"""Parts that the doctor's tests share."""

from tests.place.runtimes.conftest import (
    environment as environment,  # a JupyterLab on the host itself
)
