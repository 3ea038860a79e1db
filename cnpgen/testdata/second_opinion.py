#!/usr/bin/python3
"""Checks notifications with code that shares nothing with cnpgate: scapy, and zlib where scapy has nothing.

Usage: second_opinion.py < FRAMES

Each line of FRAMES is "KIND EXTENSIONS PKEY HEX": kind standard-cnp, fast-cnp, long-haul-cnp, long-haul-cnp-icmpv6, ppfc or
proxy-notification; 1 if the ICRC covers IPv6 extension headers, else 0; the partition key of a CNP, in hexadecimal; the
Ethernet frame without FCS. Prints what is wrong, then how many frames were checked; the exit status is 1 if anything was wrong or
no frame came.
"""
import struct
import sys
import zlib

from scapy.contrib.icmp_extensions import ICMPExtensionHeader, ICMPExtensionObject
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP, in4_chksum
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, in6_chksum
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw, bind_layers
from scapy.utils import checksum

bind_layers(Ether, Dot1Q, type=0x9100)  # service tags of equipment older than 802.1ad


def field(name, got, want):
    if got != want:
        raise ValueError("%s is %r, want %r" % (name, got, want))


def check(kind, extensions, pkey, frame):
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
    if kind == "proxy-notification":
        return check_proxy(packet)
    if kind == "fast-cnp":
        check_option(packet)
    check_cnp(kind, pkey, packet)
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
    field("next header", packet[IPv6].nh, 58)
    check_extension(bytes(message[16:]))
    field("type, code", (message[0], message[1]), (200, 0))
    got = struct.unpack_from("!H", message, 2)[0]
    message[2:4] = b"\0\0"
    field("ICMPv6 checksum", hex(got), hex(in6_chksum(58, packet[IPv6], bytes(message))))


def check_proxy(packet):
    ip, udp = packet[IP] if IP in packet else packet[IPv6], packet[UDP]
    datagram = bytes(ip)[20 if IP in packet else 40:]
    field("UDP", (udp.dport, udp.len), (1022, len(datagram)))
    field("short enough", len(bytes(ip)) <= (576 if IP in packet else 1280), True)
    zeroed = datagram[:6] + b"\0\0" + datagram[8:]
    field("UDP checksum", hex(udp.chksum), hex((in4_chksum if IP in packet else in6_chksum)(17, ip, zeroed)))
    invoking = datagram[24:] if datagram[8] >> 4 == 4 else datagram[48:]
    field("version", datagram[8] >> 4, invoking[0] >> 4)
    field("five-tuple", datagram[8] & 8 | datagram[10] | datagram[11], 0)
    inner = IP(invoking) if invoking[0] >> 4 == 4 else IPv6(invoking)
    addresses = invoking[12:20] if invoking[0] >> 4 == 4 else invoking[8:40]
    field("addresses", datagram[16:16 + len(addresses)], addresses)
    field("ports", struct.unpack("!HH", datagram[12:16]), (inner[UDP].sport, inner[UDP].dport))


def check_extension(structure):
    """An extension structure, or nothing."""
    if not structure:
        return
    header, rest = ICMPExtensionHeader(structure), structure[4:]
    field("extension header", (header.version, header.reserved, checksum(structure), bool(rest)), (2, 0, 0, True))
    while rest:
        size = ICMPExtensionObject(rest[:4]).len
        padded = (size + 3) // 4 * 4
        field("object's padding", (size >= 4, rest[size:padded]), (True, b"\0" * (padded - size)))
        rest = rest[padded:]


def check_option(packet):
    header = packet[IPv6ExtHdrDestOpt]
    options = [(o.otype, o.optlen) for o in header.options]
    field("header", (header.nh, 8 * header.len + 6), (17, sum(2 + n for _, n in options)))
    if (0x9e, 16) in options:
        return field("options", options, [(0x9e, 16), (1, 2)])
    data = header.options[1].optdata
    field("options", options, [(1, 0), (0x9e, len(data))] + [(1, 2)] * ((len(data) - 2) % 8 // 4))
    field("option 2", (len(data) >= 26, len(data) % 4, data[0], data[1] < 2), (True, 2, 0, True))


def check_cnp(kind, pkey, packet):
    udp, bth = packet[UDP], packet[BTH]
    field("UDP", (udp.dport, udp.chksum, udp.len), (4791, 0, len(bytes(udp))))
    field("BTH", (bth.opcode, bth.solicited, bth.migreq, bth.padcount, bth.version, bth.pkey, bth.ackreq, bth.resv7, bth.psn),
          (0x81, 0, 0, 0, 0, pkey, 0, 0, 0))
    field("flags", (bth.fecn, bth.becn, bth.resv6), (0, 1, 0x20 if kind in ("long-haul-cnp", "ppfc") else 0))
    behind = bytes(udp)[20:-4]
    if kind == "long-haul-cnp":
        check_extension(behind[12:])
        behind = behind[:12]
    want = {"long-haul-cnp": 12, "ppfc": 12 if IP in packet else 24}.get(kind, 16)
    field("octets behind the BTH", len(behind), want)


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
        kind, extensions, pkey, frame = line.split()
        checked += 1
        try:
            check(kind, extensions == "1", int(pkey, 16), bytes.fromhex(frame))
        except Exception as e:  # a broken frame breaks scapy in many ways
            wrong += 1
            print("frame %d, %s: %s" % (checked, kind, e))
    print("checked %d frames, %d wrong" % (checked, wrong))
    return 1 if wrong or not checked else 0


sys.exit(main())
