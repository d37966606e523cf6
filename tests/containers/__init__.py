"""Tests that run containers with podman, as root."""
