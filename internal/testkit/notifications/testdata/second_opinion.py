#!/usr/bin/python3
"""What scapy, and zlib where scapy has nothing, make of notifications. Shares nothing with the module under test.

Usage: second_opinion.py < FRAMES

Each line of FRAMES is "KIND ICRC HEX": the kind (standard-cnp, fast-cnp, ...), whether the ICRC covers IPv6 extension headers
(as-sent, without-extension-headers, or - without an ICRC), an Ethernet frame without FCS. Prints a JSON object a line: the right
octets of every checksum in the frame (ip.checksum, udp.checksum, icmpv6.checksum, extension.checksum, icrc), in hexadecimal, and
what scapy reads: options [[type, length], ...] of the Destination Options header, objects [[length, class, type], ...], fields of
UDP, BTH and MAC control. Needs scapy (Debian: python3-scapy).
"""
import json
import struct
import sys
import zlib

from scapy.contrib.icmp_extensions import ICMPExtensionHeader, ICMPExtensionObject
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP, in4_chksum
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, in6_chksum
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import bind_layers
from scapy.utils import checksum

bind_layers(Ether, Dot1Q, type=0x9100)  # service tags of equipment older than 802.1ad


def extension(structure):
    """The objects of an extension structure and its right checksum."""
    header = ICMPExtensionHeader(structure)
    objects, rest = [], structure[4:]
    while rest:
        o = ICMPExtensionObject(rest[:4])
        objects.append([o.len, o.classnum, o.classtype])
        rest = rest[(o.len + 3) // 4 * 4:]
    if header.version != 2 or header.reserved != 0:
        raise ValueError("extension header %r" % header)
    return objects, struct.pack("!H", checksum(structure[:2] + b"\0\0" + structure[4:])).hex()


def icrc_v6(wire, udp, covered):
    masked = bytearray(wire[:-4])
    masked[0:4] = b"\x6f\xff\xff\xff"
    masked[7] = 0xff
    masked[udp + 6:udp + 8] = b"\xff\xff"
    masked[udp + 12] = 0xff
    if not covered:
        del masked[40:udp]
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked))).hex()


def cnp(kind, covered, packet, ip, wire, out):
    bth = packet[BTH]
    out["bth"] = [bth.opcode, bth.solicited, bth.migreq, bth.padcount, bth.version, bth.pkey, bth.fecn, bth.becn, bth.resv6,
                  bth.dqpn, bth.ackreq, bth.resv7, bth.psn]
    udp = len(wire) - packet[UDP].len
    if IP in packet:
        out["icrc"] = bth.compute_icrc(b"").hex()
    else:
        out["icrc"] = icrc_v6(wire, udp, covered)
    if kind == "long-haul-cnp" and packet[UDP].len > 8 + 12 + 12 + 4:
        out["objects"], out["extension.checksum"] = extension(wire[udp + 32:-4])


def opinion(kind, covered, frame):
    packet = Ether(frame)
    out = {}
    if MACControlPause in packet:
        return {"pause": packet[MACControlPause].pause_time}
    if MACControlClassBasedFlowControl in packet:
        pfc = packet[MACControlClassBasedFlowControl]
        return {"pfc": [[int(getattr(pfc, "c%d_enabled" % i)), getattr(pfc, "c%d_pause_time" % i)] for i in range(8)]}
    ip = packet[IP] if IP in packet else packet[IPv6]
    wire = bytes(ip)
    if IP in packet:
        rebuilt = ip.copy()
        del rebuilt.chksum
        out["ip.checksum"] = bytes(rebuilt)[10:12].hex()
        out["ip"] = [ip.len == len(wire), ip.tos, ip.ttl]
    else:
        out["ip"] = [ip.plen == len(wire) - 40, ip.tc, ip.hlim]
    if kind == "long-haul-cnp-icmpv6":
        message = wire[40:]
        out["icmpv6.checksum"] = "%04x" % in6_chksum(58, ip, message[:2] + b"\0\0" + message[4:])
        if len(message) > 16:
            out["objects"], out["extension.checksum"] = extension(message[16:])
        return out
    udp = packet[UDP]
    out["udp"] = [udp.sport, udp.dport, udp.len]
    if IPv6ExtHdrDestOpt in packet:
        out["options"] = [[o.otype, getattr(o, "optlen", 0)] for o in packet[IPv6ExtHdrDestOpt].options]
    if kind == "proxy-notification":
        datagram = wire[-udp.len:]
        zeroed = datagram[:6] + b"\0\0" + datagram[8:]
        out["udp.checksum"] = "%04x" % (in4_chksum(17, ip, zeroed) if IP in packet else in6_chksum(17, ip, zeroed))
        return out
    cnp(kind, covered, packet, ip, wire, out)
    return out


def main():
    for line in sys.stdin:
        kind, icrc, frame = line.split()
        print(json.dumps(opinion(kind, icrc == "as-sent", bytes.fromhex(frame))))


main()
