"""Commands about images and registries."""
