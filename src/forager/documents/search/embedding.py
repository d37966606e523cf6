"""Embeddings: texts as vectors whose nearness is that of their meanings.

A static model comes with the extra `semantic`: the weights in the `wordllama` package, read without
its code. Any server with an OpenAI-compatible `/v1/embeddings` can be used instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from forager.errors import ForagerError, error_text
from forager.settings import Settings

OFF, AUTO = "off", "auto"
# tokens that are read of a text, and characters that are sent of one
MAX_TOKENS = 256
MAX_CHARACTERS = 2_000
TIMEOUT = 60.0
# words whose tokens or vectors are kept: about 20 MB
MAX_WORDS = 50_000
# of a half-precision number, as vectors are stored
LARGEST = 65_504.0
# what the tokens of the static model that start a word begin with
_START = "\u2581"

Vector = list[float]


class EmbeddingFailed(ForagerError):
    """The endpoint does not answer, or not with vectors."""


class Embedder(Protocol):
    """A model; vectors of two names cannot be compared."""

    @property
    def name(self) -> str:
        """The model and its version; vectors are stored under it."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text, all of the same length; raises EmbeddingFailed."""
        ...


class StaticModel:
    """The mean of the vectors of a text's tokens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = f"wordllama-l2-supercat-256 {version('wordllama')}"
        # no token spans two words, so each word is tokenized once
        self._tokens: dict[str, list[int]] = {}
        self._words: dict[str, Any] = {}

    async def load(self) -> None:
        """Read the model, unless it has been read: that takes longer than most searches."""
        await asyncio.to_thread(self._embed, [""])

    @cached_property
    def _weights(self) -> Any:
        from safetensors.numpy import load_file

        [weights] = load_file(self._folder / "weights" / "l2_supercat_256.safetensors").values()
        return weights

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        file = self._folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        return Tokenizer.from_file(str(file))

    @cached_property
    def _starts(self) -> frozenset[int]:
        vocabulary = self._tokenizer.get_vocab().items()
        return frozenset(number for token, number in vocabulary if token[:1] == _START)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, computed here."""
        return await asyncio.to_thread(lambda: self._embed(texts).tolist())

    def vectors(self, texts: Sequence[str]) -> Any:
        """The vectors of texts, as rows of a matrix."""
        return self._embed(texts)

    def word_vectors(self, words: Sequence[str]) -> Any:
        """The vectors of single words, as rows of a matrix."""
        import numpy

        if len(self._words) > MAX_WORDS:
            self._words.clear()
        if new := [word for word in words if word not in self._words]:
            self._words.update(zip(new, self._embed(new), strict=True))
        return numpy.stack([self._words[word] for word in words])

    def _embed(self, texts: Sequence[str]) -> Any:
        import numpy

        texts_of_tokens = [numpy.fromiter(ids, numpy.intp) for ids in self._tokenize(texts)]
        used = numpy.zeros(len(self._weights), bool)
        for ids in texts_of_tokens:
            used[ids] = True
        # half precision is slow to add: each token is converted once
        rows = self._weights[used].astype(numpy.float32)
        places = numpy.cumsum(used) - 1
        sums = numpy.stack([rows.take(places[ids], axis=0).sum(axis=0) for ids in texts_of_tokens])
        lengths = numpy.linalg.norm(sums, axis=1, keepdims=True)
        return sums / numpy.maximum(lengths, 1e-6)

    def _tokenize(self, texts: Sequence[str]) -> Iterator[Iterator[int]]:
        """The numbers of the first tokens of each text; one unknown token if it is empty."""
        if len(self._tokens) > MAX_WORDS:
            self._tokens.clear()
        words_of_texts = [text.replace(_START, " ").split(" ") for text in texts]
        self._learn(list(set().union(*words_of_texts) - self._tokens.keys() - {""}))
        # a space at the end has a token
        self._tokens[""] = [self._tokenizer.token_to_id(_START)]
        for words in words_of_texts:
            tokens = chain.from_iterable(map(self._tokens.__getitem__, words))
            yield iter([0]) if words == [""] else islice(tokens, MAX_TOKENS)

    def _learn(self, words: Sequence[str]) -> None:
        """Tokenize new words as one text: a call for each takes four times as long."""
        ids = self._tokenizer.encode(" ".join(words), add_special_tokens=False).ids
        starts = [place for place, number in enumerate(ids) if number in self._starts]
        ends = [*starts[1:], len(ids)]
        # not strict: without words, the text still has one token
        for word, start, end in zip(words, starts, ends, strict=False):
            self._tokens[word] = ids[start : min(end, start + MAX_TOKENS)]


class EndpointModel:
    """A model behind an OpenAI-compatible API, such as Ollama's, vLLM's or a hosted one."""

    def __init__(self, url: str, model: str, key: str | None) -> None:
        self._url = f"{url.rstrip('/')}/embeddings"
        self._model = model
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self.name = f"{model} at {url}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, from the configured endpoint."""
        import aiohttp  # not for every command that searches or crawls

        asked = {"model": self._model, "input": [text[:MAX_CHARACTERS] or " " for text in texts]}
        timeout = aiohttp.ClientTimeout(total=TIMEOUT)
        try:
            async with (
                aiohttp.ClientSession(headers=self._headers, timeout=timeout) as session,
                session.post(self._url, json=asked, raise_for_status=True) as answer,
            ):
                found = await answer.json()
            rows = sorted(found["data"], key=lambda row: row["index"])
            vectors = [[float(number) for number in row["embedding"]] for row in rows]
            if not all(abs(number) <= LARGEST for vector in vectors for number in vector):
                raise ValueError("the numbers of its vectors are too large")
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise EmbeddingFailed(f"the embeddings endpoint failed: {error_text(error)}") from error
        if len(vectors) != len(texts):
            raise EmbeddingFailed("the embeddings endpoint returned another number of vectors")
        return vectors


def is_configured(settings: Settings) -> bool:
    """Whether there is a model, without loading it."""
    return settings.embeddings not in (OFF, AUTO) or (
        settings.embeddings == AUTO and _model_folder() is not None
    )


def embedder_of(settings: Settings) -> Embedder | None:
    """The model that the settings name; None if there is none."""
    if settings.embeddings == OFF:
        return None
    if settings.embeddings == AUTO:
        return static_model()
    key = settings.embeddings_key
    return EndpointModel(
        settings.embeddings, settings.embeddings_model, key.get_secret_value() if key else None
    )


@cache
def static_model() -> StaticModel | None:
    """The model that is installed; None if there is none."""
    folder = _model_folder()
    return None if folder is None else StaticModel(folder)


def _model_folder() -> Path | None:
    spec = find_spec("wordllama")
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders or any(find_spec(name) is None for name in ("safetensors", "tokenizers")):
        return None
    return Path(folders[0])
