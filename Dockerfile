# An image with the server as one executable and nothing else: `docker build -t assay .`, with docker or buildah, for amd64 and arm64.

# The executable of another platform is built on the machine's own, without emulation.
FROM --platform=$BUILDPLATFORM docker.io/library/debian:12.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates npm && rm -rf /var/lib/apt/lists/*
RUN npm install --global bun@1.4.5
WORKDIR /source
COPY package.json bun.lock bunfig.toml ./
COPY patches patches
RUN bun install --frozen-lockfile --production --cpu=*
COPY tsconfig.json ./
COPY sql sql
COPY src src
COPY tools tools
ARG TARGETARCH
RUN bun tools/executable.ts --target "linux-$(echo "$TARGETARCH" | sed s/amd64/x64/)" --outfile /assay

FROM docker.io/library/debian:12.11-slim
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data assay && install -d -o assay -g assay -m 700 /data
COPY --from=build /assay /usr/local/bin/assay
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
ENV DATA_DIR=/data HOST=0.0.0.0 PORT=8080
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s CMD ["assay", "health"]
# The server finishes running uploads and stops PostgreSQL.
STOPSIGNAL SIGTERM
ENTRYPOINT ["assay"]
CMD ["start"]
