"""SQL of images and their files."""
