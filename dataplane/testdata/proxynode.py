#!/usr/bin/python3
"""A second opinion on what a proxy answers and translates, by scapy.

Usage: proxynode.py PORT_MAC   prints a line for each request: its name, the request, and the answer that a node with PORT_MAC, 192.0.2.1 and
                               2001:db8::1 gives, frames without FCS in hexadecimal; then a line for each notification to the proxy: its
                               name, the frame, and the standard CNP that the sender 198.18.0.1 gets from QP 100 of 198.19.0.1, to its
                               QP 55

The layout of the five-tuple is cnpgate's (docs/decisions.md, W7). Needs scapy (Debian: python3-scapy).
"""

import socket
import struct
import sys

from scapy.contrib.roce import BTH, cnp
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr,
                                ICMPv6NDOptSrcLLAddr, IPv6, in6_getnsma, in6_getnsmac)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

OWN4, OWN6 = "192.0.2.1", "2001:db8::1"
HOST4, HOST6, HOST_MAC = "192.0.2.9", "fe80::9", "02:00:00:00:00:09"
SENDER, RECEIVER, SOURCE_PORT = "198.18.0.1", "198.19.0.1", 0xC123


def padded(frame):
    octets = bytes(frame)
    return octets + bytes(max(0, 60 - len(octets)))


def show(name, request, answer):
    print(name, padded(request).hex(), padded(answer).hex())


def answers(mac):
    nsma = socket.inet_ntop(socket.AF_INET6, in6_getnsma(socket.inet_pton(socket.AF_INET6, OWN6)))
    nsmac = in6_getnsmac(socket.inet_pton(socket.AF_INET6, nsma))
    for tags in ([], [Dot1Q(vlan=100, prio=3)], [Dot1Q(vlan=7), Dot1Q(vlan=100)]):
        name = "%d-tags" % len(tags)

        def ether(src, dst):
            frame = Ether(src=src, dst=dst)
            for tag in tags:
                frame = frame / tag.copy()
            return frame

        show("arp-" + name, ether(HOST_MAC, "ff:ff:ff:ff:ff:ff") / ARP(op="who-has", hwsrc=HOST_MAC, psrc=HOST4, pdst=OWN4),
             ether(mac, HOST_MAC) / ARP(op="is-at", hwsrc=mac, psrc=OWN4, hwdst=HOST_MAC, pdst=HOST4))
        show("probe-" + name, ether(HOST_MAC, "ff:ff:ff:ff:ff:ff") / ARP(op="who-has", hwsrc=HOST_MAC, psrc="0.0.0.0", pdst=OWN4),
             ether(mac, HOST_MAC) / ARP(op="is-at", hwsrc=mac, psrc=OWN4, hwdst=HOST_MAC, pdst="0.0.0.0"))
        claim = ICMPv6ND_NA(R=0, S=1, O=1, tgt=OWN6) / ICMPv6NDOptDstLLAddr(lladdr=mac)
        reply = ether(mac, HOST_MAC) / IPv6(src=OWN6, dst=HOST6, hlim=255, tc=48 << 2) / claim
        ask = ICMPv6ND_NS(tgt=OWN6) / ICMPv6NDOptSrcLLAddr(lladdr=HOST_MAC)
        show("ns-multicast-" + name, ether(HOST_MAC, nsmac) / IPv6(src=HOST6, dst=nsma, hlim=255) / ask, reply)
        show("ns-unicast-" + name, ether(HOST_MAC, mac) / IPv6(src=HOST6, dst=OWN6, hlim=255) / ask, reply)
        show("dad-" + name, ether(HOST_MAC, nsmac) / IPv6(src="::", dst=nsma, hlim=255) / ICMPv6ND_NS(tgt=OWN6),
             ether(mac, "33:33:00:00:00:01") / IPv6(src=OWN6, dst="ff02::1", hlim=255, tc=48 << 2) /
             ICMPv6ND_NA(R=0, S=0, O=1, tgt=OWN6) / ICMPv6NDOptDstLLAddr(lladdr=mac))
        for size in (0, 1, 56, 1400):
            data = Raw(bytes(i & 255 for i in range(size)))
            show("ping-%d-%s" % (size, name),
                 ether(HOST_MAC, mac) / IP(src=HOST4, dst=OWN4, tos=0xB8, id=77) / ICMP(type=8, id=0x1234, seq=9) / data,
                 ether(mac, HOST_MAC) / IP(src=OWN4, dst=HOST4, tos=0xB8, id=0, flags="DF", ttl=64) / ICMP(type=0, id=0x1234, seq=9) / data)
            show("ping6-%d-%s" % (size, name),
                 ether(HOST_MAC, mac) / IPv6(src=HOST6, dst=OWN6, tc=0xB8) / ICMPv6EchoRequest(id=0x1234, seq=9, data=bytes(data)),
                 ether(mac, HOST_MAC) / IPv6(src=OWN6, dst=HOST6, tc=0xB8, hlim=64) / ICMPv6EchoReply(id=0x1234, seq=9, data=bytes(data)))


def translate():
    invoking = IP(src=SENDER, dst=RECEIVER, tos=2) / UDP(sport=SOURCE_PORT, dport=4791, chksum=0) / BTH(opcode="RC_RDMA_WRITE_MIDDLE", dqpn=100, psn=5) / \
        Raw(bytes(256))
    five_tuple = struct.pack("!BBHHH", 0x45, 17, 0, SOURCE_PORT, 4791) + socket.inet_aton(SENDER) + socket.inet_aton(RECEIVER)
    wanted = Ether(src="02:00:00:00:00:0d", dst="02:00:00:00:00:05") / \
        IP(src=RECEIVER, dst=SENDER, tos=48 << 2, id=0, flags="DF", ttl=64) / UDP(sport=SOURCE_PORT, dport=4791, chksum=0) / cnp(dqpn=55)
    for name, ip in (("ipv4", IP(src="203.0.113.7", dst=OWN4)), ("ipv6", IPv6(src="2001:db8:7::7", dst=OWN6))):
        show(name, Ether(src=HOST_MAC, dst="02:00:00:00:00:01") / ip / UDP(sport=SOURCE_PORT, dport=1022) / Raw(five_tuple + bytes(invoking)), wanted)


answers(sys.argv[1])
translate()
