"""Changed words are marked inside changed lines."""

from __future__ import annotations

from forager.web.word_diff import changes_to_html, mark_changes, marked_lines, paired_lines

HEAD = "--- old\n+++ new\n"


def test_changed_words_are_marked_in_both_lines() -> None:
    assert marked_lines(f"{HEAD}@@ -1 +1 @@\n same\n-a red <fox>\n+a brown <fox>") == [
        ("at", "@@ -1 +1 @@"),
        ("", " same"),
        ("minus", "-a <del>red</del> &lt;fox&gt;"),
        ("plus", "+a <ins>brown</ins> &lt;fox&gt;"),
    ]


def test_lines_without_a_partner_are_shown_whole() -> None:
    marked = marked_lines(f"{HEAD}-one\n-two\n+1\n end\n+new")
    assert [kind for kind, _ in marked] == ["minus", "minus", "plus", "", "plus"]
    assert marked[1][1] == "-two"
    assert marked[-1][1] == "+new"


def test_lines_stand_side_by_side() -> None:
    pairs = paired_lines(f"{HEAD} same\n-one\n-two\n+1")
    assert [(old and old[1], new and new[1]) for old, new in pairs] == [
        (" same", " same"),
        ("-<del>one</del>", "+<ins>1</ins>"),
        ("-two", None),
    ]


def test_words_of_rendered_pages_are_marked_inside_their_elements() -> None:
    texts = ["One **old** <b> & word\n\ngone", 'One **new** <i onclick="x"> & word', "same", "same"]
    changed, same = changes_to_html(texts)
    assert "<strong><del>old &lt;b&gt; </del><ins>new</ins></strong>" in changed
    assert "<i " not in changed
    assert "gone" in changed.partition("<del>")[2]
    assert "<ins>" not in same + mark_changes("<p>a</p>", "<p>a</p>")
