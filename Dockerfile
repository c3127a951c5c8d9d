# One image for the server, and for the scheduler and the workers of a dask cluster (docker-compose.yml).
FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends libatomic1 && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels "/source[cluster]"

FROM python:3.11-slim
RUN --mount=from=build,source=/wheels,target=/wheels pip install --no-cache-dir --no-index --find-links /wheels "dumpscope[cluster]"
RUN useradd --uid 10001 --create-home dumpscope && mkdir /data && chown dumpscope /data
# The system may be mounted read-only: machine code that was compiled for this processor is kept in the data folder.
ENV NUMBA_CACHE_DIR=/data/machine-code PYTHONUNBUFFERED=1
USER 10001
EXPOSE 8000
CMD ["dumpscope", "serve", "--host", "0.0.0.0", "--data-dir", "/data"]
