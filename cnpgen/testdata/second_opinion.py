#!/usr/bin/python3
"""Checks notifications with code that shares nothing with cnpgate: scapy, and zlib where scapy has nothing.

Usage: second_opinion.py < FRAMES

Each line of FRAMES is "KIND EXTENSIONS HEX": kind fast-cnp, long-haul-cnp or long-haul-cnp-icmpv6; 1 if the ICRC covers IPv6
extension headers, else 0; the Ethernet frame without FCS. Prints what is wrong, then how many frames were checked; the exit status
is 1 if anything was wrong or no frame came.
"""
import struct
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, in6_chksum
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw, bind_layers

bind_layers(Ether, Dot1Q, type=0x9100)  # service tags of equipment older than 802.1ad


def field(name, got, want):
    if got != want:
        raise ValueError("%s is %r, want %r" % (name, got, want))


def check(kind, extensions, frame):
    packet = Ether(frame)
    if IP in packet:
        check_ipv4(packet[IP])
    elif IPv6 in packet:
        field("payload length", packet[IPv6].plen, len(bytes(packet[IPv6])) - 40)
        field("flow label", packet[IPv6].fl, 0)
        field("hop limit", packet[IPv6].hlim, 64)
        field("ECN", packet[IPv6].tc & 3, 0)
    else:
        raise ValueError("no IP header")
    if kind == "long-haul-cnp-icmpv6":
        return check_icmpv6(packet)
    if kind == "fast-cnp":
        check_option(packet)
    check_cnp(kind, packet)
    if IP in packet:
        check_icrc_v4(packet[IP])
    else:
        check_icrc_v6(bytes(packet[IPv6]), extensions)


def check_ipv4(ip):
    rebuilt = ip.copy()
    del rebuilt.chksum, rebuilt.len, rebuilt.ihl
    field("IPv4 header", bytes(ip)[:20].hex(), bytes(rebuilt)[:20].hex())
    field("flags, identification, TTL", (str(ip.flags), ip.id, ip.ttl), ("DF", 0, 64))
    field("ECN", ip.tos & 3, 0)


def check_icmpv6(packet):
    message = bytearray(bytes(packet[IPv6])[40:])
    field("next header, length", (packet[IPv6].nh, len(message)), (58, 16))
    field("type, code", (message[0], message[1]), (200, 0))
    got = struct.unpack_from("!H", message, 2)[0]
    message[2:4] = b"\0\0"
    field("ICMPv6 checksum", hex(got), hex(in6_chksum(58, packet[IPv6], bytes(message))))


def check_option(packet):
    header = packet[IPv6ExtHdrDestOpt]
    field("header", (header.nh, header.len), (17, 2))
    field("options", [(o.otype, o.optlen) for o in header.options], [(0x9e, 16), (1, 2)])


def check_cnp(kind, packet):
    udp, bth = packet[UDP], packet[BTH]
    field("UDP", (udp.dport, udp.chksum, udp.len), (4791, 0, len(bytes(udp))))
    field("BTH", (bth.opcode, bth.solicited, bth.migreq, bth.padcount, bth.version, bth.pkey, bth.ackreq, bth.resv7, bth.psn),
          (0x81, 0, 0, 0, 0, 0xffff, 0, 0, 0))
    field("flags", (bth.fecn, bth.becn, bth.resv6), (0, 1, 0x20 if kind == "long-haul-cnp" else 0))
    field("octets behind the BTH", udp.len - 8 - 12 - 4, 12 if kind == "long-haul-cnp" else 16)


def check_icrc_v4(ip):
    """Rebuilds the datagram with scapy and has it compute the ICRC."""
    wire, bth = bytes(ip), ip[BTH]
    rebuilt = IP(wire[:20]) / UDP(wire[20:28]) / BTH(
        opcode=bth.opcode, pkey=bth.pkey, becn=bth.becn, resv6=bth.resv6, dqpn=bth.dqpn, psn=bth.psn) / Raw(wire[40:-4])
    field("datagram with scapy's ICRC", wire.hex(), bytes(rebuilt).hex())


def check_icrc_v6(wire, extensions):
    masked = bytearray(wire[:-4])
    udp, following = 40, wire[6]
    while following == 60:
        udp, following = udp + 8 * (wire[udp + 1] + 1), wire[udp]
    field("upper layer", following, 17)
    masked[0:4] = b"\x6f\xff\xff\xff"
    masked[7] = 0xff
    masked[udp + 6:udp + 8] = b"\xff\xff"
    masked[udp + 12] = 0xff
    if not extensions:
        del masked[40:udp]
    field("ICRC", wire[-4:].hex(), struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked))).hex())


def main():
    checked = wrong = 0
    for line in sys.stdin:
        kind, extensions, frame = line.split()
        checked += 1
        try:
            check(kind, extensions == "1", bytes.fromhex(frame))
        except Exception as e:  # a broken frame breaks scapy in many ways
            wrong += 1
            print("frame %d, %s: %s" % (checked, kind, e))
    print("checked %d frames, %d wrong" % (checked, wrong))
    return 1 if wrong or not checked else 0


sys.exit(main())
