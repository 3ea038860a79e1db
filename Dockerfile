# docker build --build-arg VERSION=v0.1.0 --build-arg COMMIT=ID -t cnpgate .
# scripts/test-image builds and runs it with buildah. The scripts install the packages, so that the image and a machine have the same ones.
# Debian 12 has DPDK 22.11, Debian 13 (--build-arg DEBIAN=13) DPDK 24.11.
ARG DEBIAN=12
FROM debian:$DEBIAN AS build
WORKDIR /src
COPY . .
RUN scripts/setup --build
# What 'cnpgate version' prints: the build context doesn't include the repository, which has both.
ARG VERSION=development
ARG COMMIT=
RUN scripts/build --version "$VERSION" --commit "$COMMIT"

FROM debian:$DEBIAN-slim
WORKDIR /usr/share/cnpgate
COPY scripts/setup scripts/lib.sh scripts/
RUN scripts/setup --runtime && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/bin/cnpgate /usr/bin/cnpgate
COPY deploy/*.yaml /usr/share/cnpgate/
# Two ordinary interfaces, eth0 to the data centre and eth1 to the WAN. Mount your own configuration over it.
COPY deploy/laptop-af-packet.yaml /etc/cnpgate/cnpgate.yaml
# Needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_IPC_LOCK. SIGTERM drains and stops.
STOPSIGNAL SIGTERM
CMD ["cnpgate", "run", "--config", "/etc/cnpgate/cnpgate.yaml"]
