"""Embeddings: texts as vectors whose nearness is that of their meanings.

A static model comes with the extra `semantic`: the weights in the `wordllama` package, read without
its code. Any server with an OpenAI-compatible `/v1/embeddings` can be used instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from forager.errors import ForagerError, error_text
from forager.settings import Settings

OFF, AUTO = "off", "auto"
# tokens that are read of a text, and characters that are sent of one
MAX_TOKENS = 256
MAX_CHARACTERS = 2_000
TIMEOUT = 60.0
# words whose vectors are kept: about 20 MB
MAX_WORDS = 20_000
# of a half-precision number, as vectors are stored
LARGEST = 65_504.0

Vector = list[float]


class EmbeddingFailed(ForagerError):
    """The endpoint does not answer, or not with vectors."""


class Embedder(Protocol):
    """A model; vectors of two names cannot be compared."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]: ...


class StaticModel:
    """The mean of the vectors of a text's tokens."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        [weights] = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
        self._weights: Any = weights
        self._tokenizer: Any = Tokenizer.from_file(
            str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
        )
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self.name = f"wordllama-l2-supercat-256 {version('wordllama')}"
        self._words: dict[str, Any] = {}

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self._embed, texts)

    def word_vectors(self, words: Sequence[str]) -> Any:
        """The vectors of single words, as rows of a matrix."""
        import numpy

        if len(self._words) > MAX_WORDS:
            self._words.clear()
        new = [word for word in words if word not in self._words]
        for word, vector in zip(new, self._embed(new), strict=True):
            self._words[word] = numpy.asarray(vector, numpy.float32)
        return numpy.stack([self._words[word] for word in words])

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        import numpy

        vectors = []
        for encoded in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False):
            rows = self._weights[encoded.ids or [0]].astype(numpy.float32)
            mean = rows.mean(axis=0)
            vectors.append((mean / max(float(numpy.linalg.norm(mean)), 1e-6)).tolist())
        return vectors


class EndpointModel:
    """A model behind an OpenAI-compatible API, such as Ollama's, vLLM's or a hosted one."""

    def __init__(self, url: str, model: str, key: str | None) -> None:
        self._url = f"{url.rstrip('/')}/embeddings"
        self._model = model
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self.name = f"{model} at {url}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
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
    spec = find_spec("wordllama")
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders or any(find_spec(name) is None for name in ("safetensors", "tokenizers")):
        return None
    return StaticModel(Path(folders[0]))
