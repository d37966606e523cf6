"""reStructuredText to HTML. Nothing but the text is read: no included files and no raw HTML."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any

from docutils import nodes
from docutils.core import publish_parts
from docutils.parsers.rst import Directive, directives, roles
from docutils.writers.html5_polyglot import HTMLTranslator, Writer

from forager.extract.text import name_set

_SETTINGS = {
    # raw, include, csv-table with a file or URL, and stylesheets
    "raw_enabled": False,
    "file_insertion_enabled": False,
    "_disable_config": True,
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": False,
    "embed_stylesheet": False,
    "stylesheet_path": None,
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "doctitle_xform": False,
    "sectsubtitle_xform": False,
    "smart_quotes": False,
    "cloak_email_addresses": False,
    "section_self_link": False,
    "toc_backlinks": False,
    "input_encoding": "unicode",
    "initial_header_level": 1,
}
_TARGET = re.compile(r"^(?P<text>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
# directives of Sphinx whose content is code, or a list of files
_CODE = frozenset({"code-block", "sourcecode", "literalinclude", "doctest", "testcode", "prompt"})
_EMPTY = frozenset({"toctree", "index", "automodule", "autoclass", "autofunction", "autosummary",
                    "currentmodule", "module", "highlight", "raw", "include", "tabularcolumns",
                    "sectionauthor", "codeauthor", "date", "meta"})  # fmt: skip


def rst_to_html(text: str) -> str:
    """The text as an HTML page. Directives and roles that are not known leave their content."""
    _register()
    parts = publish_parts(text, writer=_Writer(), settings_overrides=_SETTINGS)
    html: str = parts["html_body"]
    return html


class _Translator(HTMLTranslator):
    def visit_image(self, node: nodes.image) -> None:
        # both would read the file that the image names, which may be any file of this machine
        node.attributes.pop("loading", None)
        node.attributes.pop("scale", None)
        super().visit_image(node)


class _Writer(Writer):
    def __init__(self) -> None:
        super().__init__()
        self.translator_class = _Translator


class _Code(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        language = next(iter(_lines_before_options(self.arguments)), "text")
        classes = [f"language-{language}"]
        return [nodes.literal_block(text, text, classes=classes)] if text else []


class _Unknown(Directive):
    """A directive of an extension: its argument is a term, and its content a part of the page."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        found = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, found)
        lines = _lines_before_options(self.arguments)
        if not lines:
            return [*found.children]
        if ":" not in self.name and self.name not in _OBJECTS:
            words, messages = self.state.inline_text(" ".join(lines), self.lineno)
            return [nodes.paragraph("", "", *words, *messages), *found.children]
        items = []
        for signature in lines:
            term = nodes.term(signature, signature, ids=[_object_id(signature)])
            items.append(nodes.definition_list_item("", term))
        if items:
            items[-1] += nodes.definition("", *found.children)
        return [nodes.definition_list("", *items)]


def _lines_before_options(arguments: list[str]) -> list[str]:
    """Options that a directive does not declare are part of its argument."""
    lines = [line.strip() for argument in arguments for line in argument.splitlines()]
    return list(takewhile(lambda line: not line.startswith(":"), lines))


_OBJECTS = name_set(
    "function class method attribute data exception module option describe object envvar confval "
    "staticmethod classmethod property decorator program"
)


def _object_id(signature: str) -> str:
    """The name of a definition, as its anchor."""
    name = re.split(r"[(\[ =:,]", signature.strip(), maxsplit=1)[0]
    return name or nodes.make_id(signature)


class _Nothing(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        return []


def _role(
    name: str, rawtext: str, text: str, *_: object, **__: object
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """A reference to a page or an object by its text; the page it leads to is crawled anyway."""
    target = _TARGET.match(text)
    shown = target["text"] if target else text.lstrip("~!")
    if name == "doc":
        place = (target["target"] if target else text).strip()
        link = place if place.endswith(".rst") else f"{place}.rst"
        return [nodes.reference(rawtext, shown, refuri=link)], []
    is_code = name not in ("ref", "term", "numref", "guilabel", "menuselection", "abbr")
    return [nodes.literal(rawtext, shown) if is_code else nodes.inline(rawtext, shown)], []


_registered = False


def _register() -> None:
    """Make docutils accept every directive and role; once in a process."""
    global _registered
    if _registered:
        return
    _registered = True
    known_directive, known_role = directives.directive, roles.role

    def directive(name: str, *context: Any) -> tuple[Any, list[Any]]:
        lower = name.lower()
        if lower in _CODE:
            return _Code, []
        if lower in _EMPTY:
            return _Nothing, []
        found, messages = known_directive(name, *context)
        return (_Unknown, []) if found is None else (found, messages)

    def role(name: str, *context: Any) -> tuple[Any, list[Any]]:
        found, messages = known_role(name, *context)
        return (_role, []) if found is None else (found, messages)

    directives.directive = directive  # type: ignore[assignment]
    roles.role = role  # type: ignore[assignment]
