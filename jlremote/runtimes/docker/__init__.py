"""docker's and podman's command lines and errors."""
