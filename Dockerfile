# One image for every service of docker-compose.yml: the command says which of them a container is.
# It holds no secret and no setting; both come from the container's environment.
#
# torch: on a machine without GPUs build with the address of an index of CPU builds, which saves some GB:
#   docker compose build --build-arg PIP_EXTRA_INDEX_URL=<its address>
# The base is named by digest; a newer one: docker buildx imagetools inspect python:3.11-slim
ARG PYTHON_IMAGE=python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
FROM ${PYTHON_IMAGE} AS build
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
WORKDIR /build
# For the compiled core; it stays in this stage. Without it the image still works: the core's Python twin serves.
RUN (apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*) \
    || echo "no compiler: the pure-Python core will serve"
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY backprobe backprobe
COPY store store
COPY migrations migrations
COPY workers workers
COPY service service
# The pages' scripts are bundled before: `make web`. Without them the build stops, and says so.
ENV BACKPROBE_BUILD_REQUIRE=assets
RUN python -m venv /opt/backprobe \
    && /opt/backprobe/bin/pip install --no-cache-dir --only-binary :all: -c constraints.txt '.[all]'

FROM ${PYTHON_IMAGE}
# The interpreter and its packages belong to root and are read-only for the user who runs them.
COPY --from=build /opt/backprobe /opt/backprobe
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin backprobe
ENV PATH=/opt/backprobe/bin:/usr/local/bin:/usr/bin:/bin
USER 10001:10001
WORKDIR /
EXPOSE 8000
ENTRYPOINT ["backprobe"]
CMD ["--help"]
