# The steps are the scripts': what is installed and built here is what a machine gets. scripts/test-image runs the same steps in a
# clean root file system.
FROM debian:12 AS build
WORKDIR /src
COPY . .
RUN scripts/setup --build && scripts/build

FROM debian:12-slim
WORKDIR /usr/share/cnpgate
COPY scripts/setup scripts/lib.sh scripts/
RUN scripts/setup --runtime && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/bin/cnpgate /usr/bin/cnpgate
COPY deploy/*.yaml /usr/share/cnpgate/
# Two ordinary interfaces, eth0 to the data centre and eth1 to the WAN. Mount a configuration over it for anything else.
COPY deploy/laptop-af-packet.yaml /etc/cnpgate/cnpgate.yaml
# Needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_IPC_LOCK. SIGTERM drains and stops.
STOPSIGNAL SIGTERM
CMD ["cnpgate", "run", "--config", "/etc/cnpgate/cnpgate.yaml"]
