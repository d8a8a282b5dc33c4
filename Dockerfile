# Hone with what a team's server and its workers need. docs/deploy.md says how to use it, and
# tests/deploy executes each line in a root folder made by debootstrap.
FROM debian:bookworm-slim AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv
WORKDIR /build
# Two environments: what builds the package stays here.
RUN python3 -m venv /opt/build && python3 -m venv /opt/hone
COPY requirements-build.lock requirements-server.lock ./
# The locks name everything, so pip need not look for more.
RUN /opt/build/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements-build.lock \
    && /opt/hone/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements-server.lock
COPY pyproject.toml LICENSE ./
COPY src ./src
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /build/wheels . \
    && /opt/hone/bin/pip install --no-cache-dir --no-deps /build/wheels/*.whl \
    && /opt/hone/bin/pip check \
    && /opt/hone/bin/pip uninstall --yes pip setuptools

FROM debian:bookworm-slim
# bubblewrap confines the commands of agents where the container lets it: see docs/deploy.md.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --home-dir /var/lib/hone --shell /usr/sbin/nologin hone \
    && install --directory --owner hone --group hone --mode 0700 \
        /var/lib/hone /var/lib/hone/home /var/lib/hone/work
COPY --from=build /opt/hone /opt/hone
COPY --chmod=755 deploy/entrypoint.sh /usr/local/bin/hone-entrypoint
ENV PATH=/opt/hone/bin:/usr/local/bin:/usr/bin:/bin
ENV HOME=/var/lib/hone HONE_HOME=/var/lib/hone/home LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
# The home of this server or worker, and where its agents work. Everything else may be read-only.
VOLUME ["/var/lib/hone"]
WORKDIR /var/lib/hone/work
USER hone
EXPOSE 8420
STOPSIGNAL SIGTERM
# The server answers to its own names only; the address that it listens at is one of them.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python3", "-c", "import urllib.request as web; web.urlopen('http://0.0.0.0:8420/ready', timeout=4)"]
ENTRYPOINT ["hone-entrypoint"]
CMD ["hone", "serve", "--no-open", "--host", "0.0.0.0", "--name", "localhost:8420", "--password-file", "/run/secrets/hone_password"]
