"""A process that looks into image files: bytes from standard input, what they are to its output.

Image files are hostile input, and decoders are old C code. Here a bad one costs this process, and
that one image.
"""

from __future__ import annotations

import io
import sys
import warnings
from typing import Any, NamedTuple

# imported here: Pillow would otherwise load all decoders to find these two
from PIL import AvifImagePlugin, Image, UnidentifiedImageError, WebPImagePlugin

from forager.errors import error_text
from forager.processes.serving import Response, limit_memory, serve

# a photo of 50 megapixels takes 200 MB when decoded
MAX_PIXELS = 50_000_000
# larger than any image of a shop
MAX_SIDE = 30_000


assert AvifImagePlugin.SUPPORTED
assert WebPImagePlugin.SUPPORTED


class ImageFormat(NamedTuple):
    """A format of images that is stored."""

    pillow: str
    media_type: str
    extension: str


JPEG = ImageFormat("JPEG", "image/jpeg", "jpg")
PNG = ImageFormat("PNG", "image/png", "png")
GIF = ImageFormat("GIF", "image/gif", "gif")
WEBP = ImageFormat("WEBP", "image/webp", "webp")
AVIF = ImageFormat("AVIF", "image/avif", "avif")
BMP = ImageFormat("BMP", "image/bmp", "bmp")


class ImageRefused(Exception):
    """Why a file is not kept."""


def inspect(data: bytes) -> dict[str, Any]:
    """The properties of an image; raises Refused for other files."""
    kind = _sniff(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _decode(data, kind)
    except (ImageRefused, MemoryError):
        raise
    except Image.DecompressionBombError:
        raise ImageRefused("the image is too large: it has more pixels than are decoded") from None
    except UnidentifiedImageError:
        raise ImageRefused(f"the {kind.pillow} file is broken: its header cannot be read") from None
    except Exception as error:
        raise ImageRefused(f"the {kind.pillow} file is broken: {_words(error)}") from None


def _decode(data: bytes, kind: ImageFormat) -> dict[str, Any]:
    with Image.open(io.BytesIO(data), formats=[kind.pillow]) as image:
        width, height = image.size
        _check_size(width, height)
        image.verify()
    # for most formats only decoding shows that no pixels are missing
    with Image.open(io.BytesIO(data), formats=[kind.pillow]) as image:
        if kind is JPEG:
            image.draft("L", (1, 1))  # all data is read, at an eighth of the size
        image.load()
    return {
        "media_type": kind.media_type,
        "extension": kind.extension,
        "width": width,
        "height": height,
    }


def _check_size(width: int, height: int) -> None:
    if width < 1 or height < 1:
        raise ImageRefused("the image has no pixels")
    if width > MAX_SIDE or height > MAX_SIDE or width * height > MAX_PIXELS:
        raise ImageRefused(f"the image is too large: {width} x {height} pixels")


def _sniff(data: bytes) -> ImageFormat:
    """The format by the first bytes."""
    if not data:
        raise ImageRefused("the file is empty")
    if data.startswith(b"\xff\xd8\xff"):
        return JPEG
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if data.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return WEBP
    if data[4:8] == b"ftyp" and (b"avif" in data[8:64] or b"avis" in data[8:64]):
        return AVIF
    if data.startswith(b"BM"):
        return BMP
    raise ImageRefused(_what_else(data[:1024]))


def _what_else(start: bytes) -> str:
    text = start.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").lower()
    if "<svg" in text:
        return "it is an SVG, which can run scripts"
    if text.startswith(("<!doctype html", "<html", "<head", "<body")):
        return "it is a web page, not an image"
    return "it is not an image of a known format (JPEG, PNG, GIF, WebP, AVIF, BMP)"


def _words(error: Exception) -> str:
    """One short line: the text comes from a decoder, and may repeat content of the file."""
    text = " ".join(error_text(error).split()).encode("ascii", "replace").decode()[:150]
    return text or type(error).__name__


def answer(_: dict[str, Any], body: bytes) -> Response:
    try:
        return inspect(body), []
    except ImageRefused as refused:
        return {"refused": error_text(refused)}, []


if __name__ == "__main__":
    limit_memory(int(sys.argv[1]))
    serve(answer)
