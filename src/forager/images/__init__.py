"""The images of products: which there are, their files, and who fetches them."""

from forager.images.listing import SeenImages, record_images, renew_images

__all__ = ["SeenImages", "record_images", "renew_images"]
