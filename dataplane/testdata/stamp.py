#!/usr/bin/python3
"""A second opinion on STAMP packets (RFC 8762), by scapy.

Usage: stamp.py build < /dev/null     prints frames with a test packet, by IPv4 and IPv6, in hexadecimal
       stamp.py read < frames         reads a frame a line, in hexadecimal, in turn a test packet and a reply, and prints a JSON object
                                      a line: whether scapy builds the same octets from what it reads, checksums included, and what
                                      it reads

Needs scapy (Debian: python3-scapy).
"""

import itertools
import json
import sys

from scapy.contrib.stamp import (ErrorEstimate, STAMPSessionReflectorTestUnauthenticated,
                                 STAMPSessionSenderTestUnauthenticated)
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

HOSTS = {IP: ("192.0.2.2", "192.0.2.1"), IPv6: ("2001:db8::2", "2001:db8::1")}


def build():
    for ip, (src, dst) in HOSTS.items():
        stamp = STAMPSessionSenderTestUnauthenticated(seq=9, ts=3_000_000_000.5, ssid=0,
                                                      err_estimate=ErrorEstimate(S=1, scale=3, multiplier=5))
        hops = {"ttl": 77} if ip is IP else {"hlim": 77}
        packet = Ether(src="02:00:00:00:00:05", dst="02:00:00:00:00:0d") / ip(src=src, dst=dst, **hops) / UDP(sport=5000, dport=862)
        print(bytes(packet / bytes(stamp)).hex())


def opinion(frame, kind):
    ether = Ether(frame)
    datagram = ether[UDP]
    stamp = kind(bytes(datagram.payload))
    payload = bytes(datagram.payload)
    datagram.remove_payload()
    rebuilt = ether / bytes(stamp)
    for layer, field in ((UDP, "chksum"), (UDP, "len"), (IP, "chksum"), (IP, "len"), (IPv6, "plen")):
        if layer in rebuilt:
            rebuilt[layer].delfieldval(field)
    ip = rebuilt[IP] if IP in rebuilt else rebuilt[IPv6]
    result = {"same": bytes(rebuilt) == frame, "octets": len(payload), "src": ip.src, "dst": ip.dst, "sport": datagram.sport,
              "dport": datagram.dport, "hops": ip.ttl if IP in rebuilt else ip.hlim, "seq": stamp.seq, "ts": float(stamp.ts), "ssid": stamp.ssid,
              "error": [stamp.err_estimate.S, stamp.err_estimate.Z, stamp.err_estimate.scale, stamp.err_estimate.multiplier]}
    if kind is STAMPSessionReflectorTestUnauthenticated:
        result.update(ts_rx=float(stamp.ts_rx), seq_sender=stamp.seq_sender, ts_sender=float(stamp.ts_sender), ttl_sender=stamp.ttl_sender,
                      error_sender=[stamp.err_estimate_sender.S, stamp.err_estimate_sender.scale, stamp.err_estimate_sender.multiplier])
    return result


def main():
    if sys.argv[1] == "build":
        build()
        return
    kinds = itertools.cycle((STAMPSessionSenderTestUnauthenticated, STAMPSessionReflectorTestUnauthenticated))
    for line, kind in zip(sys.stdin, kinds):
        print(json.dumps(opinion(bytes.fromhex(line.strip()), kind)))


main()
