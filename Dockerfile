FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends libatomic1 && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels "/source[cluster]"

FROM python:3.11-slim
RUN --mount=from=build,source=/wheels,target=/wheels pip install --no-cache-dir --no-index --find-links /wheels "dumpscope[cluster]"
RUN useradd --create-home dumpscope && mkdir /data && chown dumpscope /data
USER dumpscope
EXPOSE 8000
CMD ["dumpscope", "serve", "--host", "0.0.0.0", "--data-dir", "/data"]
