"""Tests that run containers with podman as root: `make test-containers` and `make test-packages`."""
