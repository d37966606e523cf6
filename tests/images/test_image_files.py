"""Image files are inspected, written whole and read again."""

from __future__ import annotations

import io
from hashlib import sha256
from pathlib import Path

import pytest
from PIL import Image

from forager.archive.objects import open_bucket
from forager.archive.storage import size_of
from forager.errors import GiveUp, InvalidInput, NotFound
from forager.images.fetcher import ImageInspection
from forager.images.files import IMAGE_FILES, image_files_at, image_path
from forager.images.inspector import ImageRefused, inspect
from forager.processes.sandbox import SandboxLimits
from images.image_shop import HTML, SVG, picture, png_of_size


@pytest.mark.parametrize(
    ("kind", "media_type", "extension"),
    [
        ("JPEG", "image/jpeg", "jpg"),
        ("PNG", "image/png", "png"),
        ("GIF", "image/gif", "gif"),
        ("WEBP", "image/webp", "webp"),
        ("AVIF", "image/avif", "avif"),
        ("BMP", "image/bmp", "bmp"),
    ],
)
def test_images_of_known_formats_are_measured(kind: str, media_type: str, extension: str) -> None:
    assert inspect(picture(kind)) == {
        "media_type": media_type,
        "extension": extension,
        "width": 64,
        "height": 48,
    }


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "AVIF", "BMP"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.95])
def test_truncated_images_are_rejected(kind: str, share: float) -> None:
    data = picture(kind)
    with pytest.raises(ImageRefused):
        inspect(data[: int(len(data) * share)])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (SVG, "SVG"),
        (b"\xef\xbb\xbf  " + SVG, "SVG"),
        (HTML, "web page"),
        (b"MZ\x90\x00", "not an image"),
        (b"\xff\xd8\xff" + HTML, "broken"),
        (b"GIF89a" + SVG, "broken"),
        (b"\x89PNG\r\n\x1a\n", "broken"),
        (png_of_size(0, 10), "broken|no pixels"),
        (png_of_size(10_000, 10_000), "too large"),
        (png_of_size(2**31 - 1, 2**31 - 1), "too large"),
        (png_of_size(40_000, 1), "too large"),
    ],
)
def test_what_is_no_image_is_refused_with_the_reason(data: bytes, words: str) -> None:
    with pytest.raises(ImageRefused, match=words) as refused:
        inspect(data)
    assert "0x" not in str(refused.value)


async def test_a_decoder_that_takes_too_much_costs_one_image() -> None:
    # 36 million pixels in a few kilobytes: within the limits of size, not of memory
    file = io.BytesIO()
    Image.new("RGB", (6000, 6000)).save(file, "PNG")
    inspection = ImageInspection(SandboxLimits(seconds=30, memory_mb=128))
    try:
        with pytest.raises(GiveUp, match="the image cannot be read: it needs more than 128 MB"):
            await inspection.inspect(file.getvalue())
        assert (await inspection.inspect(picture())).width == 64
    finally:
        await inspection.close()


async def test_files_are_written_whole_and_read_again(tmp_path: Path) -> None:
    files = image_files_at(tmp_path)
    path = image_path(sha256(b"x").digest(), "png")
    assert await size_of(files, path) is None
    await files.put_all(path, b"x")
    await files.put_all(path, b"x")

    assert (await size_of(files, path), await files.read_all(path)) == (1, b"x")
    assert [found.name for found in (tmp_path / path).parent.iterdir()] == [Path(path).name]
    (tmp_path / path).with_name(f".{Path(path).name}.12345678.part").write_bytes(b"left behind")
    await files.delete(path)
    await files.delete(path)
    assert list((tmp_path / path).parent.iterdir()) == []
    with pytest.raises(NotFound):
        await files.read_all(path)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "images/../../x", "images/ab/cd/" + "0" * 64 + ".jpg/..", "images"]
)
async def test_a_path_leads_nowhere_else(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidInput):
        await image_files_at(tmp_path).read_all(path)


async def test_a_bucket_holds_images_too() -> None:
    # a store of the same library that needs no server
    files = open_bucket("memory:///", kind=IMAGE_FILES)
    path = image_path(sha256(b"x").digest(), "png")
    assert await size_of(files, path) is None
    await files.put_all(path, b"x")
    assert (await size_of(files, path), await files.read_all(path)) == (1, b"x")
    await files.delete(path)
    await files.delete(path)
    with pytest.raises(NotFound):
        await files.read_all(path)
