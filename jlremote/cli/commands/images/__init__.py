"""The heading `Images`: images, build, save, pull, push and login."""
