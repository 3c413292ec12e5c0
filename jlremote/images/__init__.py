"""Container images and registries: command lines, output and errors as plain functions."""
