#!/usr/bin/python3
"""RoCEv2 frames in tunnels, by scapy.

Usage: ./tunnels.py > tunnels.jsonl

Prints a JSON object a line: name; frame, in hexadecimal; the kind and the identifier of the tunnel, as packet.Tunnel has them; vlan, the VLAN
of the Ethernet frame inside; of the RoCEv2 packet inside src, dst, src_port, dest_qp, psn, and the offset of its IP header, l3; and of the
outermost IP header the offset (outer) and the traffic class (class). Needs scapy (Debian: python3-scapy).
"""

import json
import logging

from scapy.contrib.mpls import MPLS, EoMCW
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)  # it has no ICRC over IPv6, and says so
VNI, KEY, LABEL = 0xABCDEF, 0xFEDCBA98, 0xABCDE
CLASS = 26 << 2 | 2  # DSCP 26, ECT(0)
ETHER = {"dst": "02:00:00:00:00:01", "src": "02:00:00:00:00:02"}


def roce(version):
    """The packet in the tunnels: an RC RDMA WRITE Middle with ECT(1), DSCP 0."""
    if version == 4:
        ip = IP(src="10.1.0.1", dst="10.2.0.2", tos=1)
    else:
        ip = IPv6(src="fd00:1::1", dst="fd00:2::2", tc=1)
    return ip / UDP(sport=0xD123, dport=4791, chksum=0) / BTH(opcode=7, dqpn=0x654321, psn=0x123456) / Raw(bytes(range(32)))


def frame(version, vlan=None):
    """The packet in an Ethernet frame of its own. The MAC address begins with the bits that an IPv4 packet begins with."""
    tag = Dot1Q(vlan=vlan) if vlan is not None else None
    ether = Ether(dst="46:00:00:00:00:11", src="06:00:00:00:00:12")
    return (ether / tag if tag else ether) / roce(version)


def outer(version, **fields):
    if version == 4:
        return IP(src="192.0.2.1", dst="192.0.2.2", tos=CLASS, **fields)
    if "proto" in fields:
        fields["nh"] = fields.pop("proto")
    return IPv6(src="2001:db8::1", dst="2001:db8::2", tc=CLASS, **fields)


def label(value, bottom=1):
    return MPLS(label=value, s=bottom, ttl=64)


def tunnels():
    """name, kind, identifier, VLAN inside, outer IP version or None, and the frame."""
    for inner in 4, 6:
        proto = 4 if inner == 4 else 41
        for over in 4, 6:
            about = f"IPv{inner} in %s over IPv{over}"
            vxlan = outer(over) / UDP(sport=0xC123, dport=4789) / VXLAN(vni=VNI, flags="Instance")
            yield about % "VXLAN", "vxlan", VNI, 0, over, vxlan / frame(inner)
            yield about % "VXLAN, with a tag inside", "vxlan", VNI, 7, over, vxlan / frame(inner, 7)
            yield about % "GRE", "gre", 0, 0, over, outer(over) / GRE() / roce(inner)
            yield about % "GRE with key", "gre", KEY, 0, over, outer(over) / GRE(key_present=1, key=KEY) / roce(inner)
            full = GRE(chksum_present=1, key_present=1, key=KEY, seqnum_present=1, seqence_number=9)
            yield about % "GRE with checksum, key and sequence number", "gre", KEY, 0, over, outer(over) / full / roce(inner)
            yield about % "NVGRE", "gre", KEY, 0, over, outer(over) / GRE(proto=0x6558, key_present=1, key=KEY) / frame(inner)
            yield about % "IP", "ip-in-ip", 0, 0, over, outer(over, proto=proto) / roce(inner)
            yield about % "MPLS in GRE", "mpls", LABEL, 0, over, outer(over) / GRE(proto=0x8847) / label(LABEL) / roce(inner)
            yield about % "MPLS", "mpls", LABEL, 0, over, outer(over, proto=137) / label(16, 0) / label(LABEL) / roce(inner)
        for segments in 1, 3:
            srh = IPv6ExtHdrSegmentRouting(nh=proto, addresses=["2001:db8::2"] * segments, lastentry=segments - 1, segleft=0)
            yield f"IPv{inner} in SRv6 with {segments} segments", "srv6", 0, 0, 6, outer(6, proto=43) / srh / roce(inner)
            srh = IPv6ExtHdrSegmentRouting(nh=143, addresses=["2001:db8::2"] * segments, lastentry=segments - 1, segleft=0)
            yield f"IPv{inner} in Ethernet in SRv6 with {segments} segments", "srv6", 0, 7, 6, outer(6, proto=43) / srh / Raw(bytes(frame(inner, 7)))
        yield f"IPv{inner} in Ethernet in SRv6 without a header", "srv6", 0, 0, 6, outer(6, proto=143) / Raw(bytes(frame(inner)))
        about = f"IPv{inner} in MPLS"
        yield about, "mpls", LABEL, 0, None, label(LABEL) / roce(inner)
        yield about + ", three labels", "mpls", LABEL, 0, None, label(16, 0) / label(17, 0) / label(LABEL) / roce(inner)
        yield about + ", an entropy label", "mpls", LABEL, 0, None, label(LABEL, 0) / label(7, 0) / label(99) / roce(inner)
        word = EoMCW(zero=0, reserved=0, seq=5)
        yield about + ", pseudowire", "mpls", LABEL, 0, None, label(LABEL) / word / frame(inner)
        yield about + ", pseudowire with a tag inside", "mpls", LABEL, 7, None, label(LABEL) / word / frame(inner, 7)
        bare = Raw(bytes(frame(inner)))
        yield about + ", pseudowire without control word", "mpls", LABEL, 0, None, label(LABEL) / bare
        bare = Raw(bytes(frame(inner, 7)))
        yield about + ", pseudowire without control word, with a tag inside", "mpls", LABEL, 7, None, label(LABEL) / bare
        vxlan = outer(4) / UDP(sport=0xC123, dport=4789) / VXLAN(vni=VNI, flags="Instance") / frame(inner)
        yield f"IPv{inner} in VXLAN over IPv4 in MPLS", "vxlan", VNI, 0, 4, label(LABEL) / vxlan


def main():
    for name, kind, number, vlan, over, packet in tunnels():
        version = int(name[3])
        ether = Ether(**ETHER) if over else Ether(type=0x8847, **ETHER)
        if isinstance(packet, MPLS):
            ether = Ether(type=0x8847, **ETHER)
        octets = bytes(ether / packet)
        inside = bytes(roce(version))
        l3 = octets.index(inside[:24])
        first = l3
        if over:
            first = len(ether) + (4 if isinstance(packet, MPLS) else 0)
        print(json.dumps({
            "name": name, "frame": octets.hex(), "kind": kind, "id": number, "vlan": vlan,
            "src": "10.1.0.1" if version == 4 else "fd00:1::1", "dst": "10.2.0.2" if version == 4 else "fd00:2::2",
            "src_port": 0xD123, "dest_qp": 0x654321, "psn": 0x123456, "l3": l3, "outer": first, "class": CLASS if over else 1,
        }))


main()
