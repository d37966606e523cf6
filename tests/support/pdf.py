"""Small PDF files with text and an outline."""

from __future__ import annotations

from collections.abc import Sequence


def make_pdf(
    pages: Sequence[Sequence[str]], outline: Sequence[tuple[str, int]] = (), title: str = ""
) -> bytes:
    """Pages of lines; `outline`: titles with their pages, from 0."""
    first_page, first_item = 5, 5 + 2 * len(pages)
    kids = " ".join(f"{first_page + 2 * number} 0 R" for number in range(len(pages)))
    items = len(outline)
    last = first_item + items - 1
    objects = [
        "<< /Type /Catalog /Pages 2 0 R" + (" /Outlines 4 0 R" if outline else "") + " >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Type /Outlines /First {first_item} 0 R /Last {last} 0 R /Count {items} >>",
    ]
    for number, lines in enumerate(pages):
        shown = " ".join(f"({_escaped(line)}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]"
            " /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {first_page + 2 * number + 1} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    for number, (text, page) in enumerate(outline):
        around = f"/Prev {first_item + number - 1} 0 R " if number else ""
        around += f"/Next {first_item + number + 1} 0 R " if number + 1 < items else ""
        target = f"[{first_page + 2 * page} 0 R /XYZ 0 792 0]"
        objects.append(f"<< /Title ({_escaped(text)}) /Parent 4 0 R {around}/Dest {target} >>")
    objects.append(f"<< /Title ({_escaped(title)}) >>")
    return _file(objects)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _file(objects: Sequence[str]) -> bytes:
    body = b"%PDF-1.4\n"
    places = []
    for number, text in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    size = len(objects) + 1
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer << /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\n"
    end += f"startxref\n{len(body)}\n%%EOF"
    return body + f"xref\n0 {size}\n0000000000 65535 f \n{table}{end}".encode()
