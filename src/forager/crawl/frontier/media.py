"""Extensions of files that are certainly not pages.

Doubtful ones (pdf, xml, txt, ts, map, bin) are not here: a file fetched in vain costs a request, a
page taken for a file is lost.
"""

from __future__ import annotations

_IMAGES = "avif bmp gif heic heif ico jfif jpeg jpg jxl png psd svg svgz tif tiff webp"
_SOUND = "aac aif aiff flac m4a mp3 oga ogg opus wav weba wma"
_VIDEO = "3gp avi flv m4v mkv mov mp4 mpeg mpg ogv webm wmv"
_ARCHIVES = "7z bz2 cab gz lzma rar tar tbz2 tgz txz xz zip zst"
_PROGRAMS = "apk deb dmg exe iso jar msi rpm whl"
_FONTS = "eot otf ttf woff woff2"
_PARTS_OF_PAGES = "css js mjs wasm"

MEDIA_EXTENSIONS = frozenset(
    " ".join((_IMAGES, _SOUND, _VIDEO, _ARCHIVES, _PROGRAMS, _FONTS, _PARTS_OF_PAGES)).split()
)
