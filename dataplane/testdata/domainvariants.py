#!/usr/bin/python3
"""Notifications, and ordinary traffic next to them, in every wrapping that scapy builds. Shares nothing with the module under test.

Usage: domainvariants.py

Prints a line for each Ethernet frame without FCS: "stop" or "cross", for what the filter of an empty domain must do with it, the frame in
hexadecimal, and what it is. Needs scapy (Debian: python3-scapy).
"""
import struct

from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.macsec import MACsec
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_LSRR, IPOption_NOP, IPOption_Router_Alert, fragment
from scapy.layers.inet6 import (ICMPv6EchoRequest, ICMPv6ND_NS, ICMPv6Unknown, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                                IPv6ExtHdrRouting, IPv6ExtHdrSegmentRouting, HBHOptUnknown, Jumbo, PadN, fragment6)
from scapy.layers.ipsec import AH, ESP, SecurityAssociation
from scapy.layers.l2 import ARP, GRE, LLC, SNAP, STP, Dot1AD, Dot1Q, Dot3, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw, bind_layers

bind_layers(IP, IPv6, proto=41)
MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}


def link(packet):
    return Ether(**MACS) / packet


def emit(verdict, name, frame):
    print(verdict, bytes(frame).hex(), name)


def v4(**more):
    return IP(src="198.18.0.1", dst="198.19.0.1", **more)


def v6(**more):
    return IPv6(src="fd00:18::1", dst="fd00:19::1", **more)


def cnp(flags, body):
    """Raw octets, since scapy's BTH adds an ICRC for whole packets only; the filter looks at no ICRC."""
    return UDP(sport=0xc123, dport=4791, chksum=0) / Raw(
        struct.pack("!BBHIII", 0x81, 0x40, 0xffff, flags << 24 | 0x123456, 0, 0)[:12] + bytes(body) + bytes(4))


FAST = IPv6ExtHdrDestOpt(options=[HBHOptUnknown(otype=0x9e, optlen=16, optdata=bytes(16))])
PROXY = UDP(sport=1, dport=1022) / Raw(bytes(80))
NOTIFICATIONS = {  # name: (maker of the IP header, what follows it)
    "extended CNP": (v4, cnp(0x60, 12)),
    "extended CNP over IPv6": (v6, cnp(0x60, 12)),
    "Fast CNP": (v6, FAST / cnp(0x40, 16)),
    "Long-haul CNP over ICMPv6": (v6, ICMPv6Unknown(type=200, msgbody=bytes(24))),
    "proxy notification": (v4, PROXY),
    "proxy notification over IPv6": (v6, PROXY),
}
ORDINARY = {
    "TCP": (v4, TCP(sport=1, dport=1022) / Raw(bytes(64))),
    "TCP over IPv6": (v6, TCP(sport=1, dport=1022) / Raw(bytes(64))),
    "ping": (v4, ICMP() / Raw(bytes(64))),
    "ping over IPv6": (v6, ICMPv6EchoRequest(data=bytes(64))),
    "neighbour solicitation": (v6, ICMPv6ND_NS(tgt="fd00:19::1")),
    "DNS": (v4, UDP(sport=1, dport=53) / Raw(bytes(40))),
    "DNS over IPv6": (v6, UDP(sport=1, dport=53) / Raw(bytes(40))),
    "standard CNP": (v4, cnp(0x40, 16)),
    "standard CNP over IPv6": (v6, cnp(0x40, 16)),
}


def tags(n, kind=Dot1Q, **more):
    stack = kind(vlan=5, **more)
    for _ in range(n - 1):
        stack = stack / kind(vlan=5, **more)
    return stack


def fragments(make, upper, size):
    if make is v4:
        return fragment(v4() / upper, fragsize=size)
    whole = v6() / IPv6ExtHdrFragment(id=7) / upper
    return fragment6(whole, 40 + 8 + size)


def same_verdict(verdict, name, make, upper):
    """Wrappings that hide nothing from who looks through them: what the packet is decides."""
    ip = make() / upper
    emit(verdict, name, link(ip))
    emit(verdict, name + ", tag", link(tags(1) / ip))
    emit(verdict, name + ", two tags", Ether(type=0x88a8, **MACS) / tags(1, Dot1AD) / tags(1) / ip)
    emit(verdict, name + ", GRE", link(v4() / GRE() / ip))
    emit(verdict, name + ", GRE with key over IPv6", link(v6() / GRE(key_present=1, key=7) / ip))
    emit(verdict, name + ", GRE of Ethernet", link(v4() / GRE(proto=0x6558) / link(ip)))
    emit(verdict, name + ", VXLAN", link(v4() / UDP(sport=7, dport=4789) / VXLAN(vni=5) / link(ip)))
    emit(verdict, name + ", VXLAN over IPv6", link(v6() / UDP(sport=7, dport=4789) / VXLAN(vni=5) / link(tags(1) / ip)))
    emit(verdict, name + ", Geneve", link(v4() / UDP(sport=7, dport=6081) / GENEVE(vni=5) / link(ip)))
    emit(verdict, name + ", GTP-U", link(v4() / UDP(sport=7, dport=2152) / GTP_U_Header(gtp_type=255, teid=5) / ip))
    emit(verdict, name + ", VXLAN of a group", link(v4() / UDP(sport=7, dport=4789) / VXLAN(flags="G+Instance", gpid=7, vni=5) / link(ip)))
    emit(verdict, name + ", IP in IP", link(v4() / ip))
    emit(verdict, name + ", IP in IPv6", link(v6() / ip))
    if make is v4:
        emit(verdict, name + ", options", link(v4(options=[IPOption_NOP()] * 3 + [IPOption_Router_Alert()]) / upper))
        emit(verdict, name + ", source route", link(v4(options=[IPOption_LSRR(routers=["192.0.2.9"])]) / upper))
        return
    emit(verdict, name + ", Hop-by-Hop", link(v6() / IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))]) / upper))
    emit(verdict, name + ", Routing", link(v6() / IPv6ExtHdrRouting(addresses=["fd00:20::1"], segleft=0) / upper))
    emit(verdict, name + ", Segment Routing", link(v6() / IPv6ExtHdrSegmentRouting(addresses=["fd00:20::1"], lastentry=0, segleft=1) / upper))
    emit(verdict, name + ", atomic fragment", link(v6() / IPv6ExtHdrFragment(id=7) / upper))
    for n in range(1, 7):
        emit(verdict, "%s, %d headers" % (name, n), link(chain(n, upper)))


def chain(n, upper):
    packet = v6()
    for _ in range(n):
        packet = packet / IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))])
    return packet / upper


def stopped(name, make, upper):
    """Wrappings that a notification may be in and that nobody looks through."""
    ip = make() / upper
    for n in (3, 4):
        emit("stop", "%s, %d tags" % (name, n), link(tags(n) / ip))
    for tpid in (0x9200, 0x9300, 0x4321):
        emit("stop", "%s, TPID %#x" % (name, tpid), Ether(type=tpid, **MACS) / Raw(bytes(tags(1) / ip)))
    for kind, frame in (
            ("MPLS", link(MPLS(label=5, s=1, ttl=9) / ip)), ("PPPoE", link(PPPoE(code=0, sessionid=1) / PPP() / ip)),
            ("MACsec", link(MACsec(E=0, C=0, pn=1, type=0x0800 if make is v4 else 0x86dd) / ip))):
        emit("stop", name + ", " + kind, frame)
        behind = bytes(frame)[12:]
        emit("stop", name + ", unknown TPID and " + kind, Ether(type=0x4321, **MACS) / Raw(b"\0\5" + behind))
        emit("stop", name + ", three tags, the last of unknown TPID, and " + kind,
             Ether(type=0x8100, **MACS) / Dot1Q(vlan=5, type=0x88a8) / Dot1AD(vlan=6, type=0x4321) / Raw(b"\0\5" + behind))
    for llc in ({}, {"ctrl": 0x13}, {"dsap": 0xab}, {"ssap": 0xab}):
        snap = Raw(bytes(SNAP() / ip))
        emit("stop", "%s, SNAP with %s" % (name, llc), Dot3(**MACS) / LLC(**{"dsap": 0xaa, "ssap": 0xaa, "ctrl": 3, **llc}) / snap)
    emit("stop", name + ", bridged SNAP", Dot3(**MACS) / LLC(dsap=0xaa, ssap=0xaa, ctrl=3) / SNAP(OUI=0x80c2, code=7) / Raw(bytes(link(ip))))
    emit("stop", name + ", VXLAN-GPE", link(v4() / UDP(sport=7, dport=4789) / VXLAN(flags=0x0c, NextProtocol=1 if make is v4 else 2, vni=5) / Raw(bytes(ip))))
    emit("stop", name + ", VXLAN of three tags", link(v4() / UDP(sport=7, dport=4789) / VXLAN(vni=5) / link(tags(3) / ip)))
    emit("stop", name + ", GRE in GRE", link(v4() / GRE() / v4() / GRE() / ip))
    key = b"0123456789abcdef"
    for proto, arguments in ((ESP, {"crypt_algo": "NULL"}), (AH, {"auth_algo": "HMAC-SHA1-96", "auth_key": key})):
        if proto is ESP or make is v4:
            emit("stop", "%s, %s" % (name, proto.__name__), link(SecurityAssociation(proto, spi=7, **arguments).encrypt(type(ip)(bytes(ip)))))
    if make is v6:
        emit("stop", name + ", jumbogram", link(v6(plen=0) / IPv6ExtHdrHopByHop(options=[Jumbo(jumboplen=len(upper) + 8)]) / upper))
        for n in (9, 10, 20):
            emit("stop", "%s, %d headers" % (name, n), link(chain(n, upper)))


for name, (make, upper) in NOTIFICATIONS.items():
    same_verdict("stop", name, make, upper)
    stopped(name, make, upper)
    for size in (8, 16, 24, 32):
        for i, piece in enumerate(fragments(make, upper, size)):
            emit("stop", "%s, fragments of %d octets, piece %d" % (name, size, i + 1), link(piece))
for name, (make, upper) in ORDINARY.items():
    same_verdict("cross", name, make, upper)
    if name in ("TCP", "TCP over IPv6", "ping"):
        for i, piece in enumerate(fragments(make, upper, 24)):
            emit("cross", "%s, fragments, piece %d" % (name, i + 1), link(piece))
emit("cross", "ARP", link(ARP(psrc="198.18.0.1", pdst="198.19.0.1")))
emit("cross", "spanning tree", Dot3(**MACS) / LLC() / STP())
