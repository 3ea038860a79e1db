#!/usr/bin/python3
"""A second opinion on ICRCs and checksums, by code that isn't ours.

Usage: secondopinion.py < frames

Reads one Ethernet frame a line, in hexadecimal, and prints a JSON object a line:
  icrc          the right ICRC as it would be on the wire, 8 hexadecimal digits; of IPv4 by scapy's contrib roce, of IPv6, which
                scapy lacks, by the plain computation below (extension headers as sent)
  icrc_without  of IPv6: the same without extension headers
  checksum      whether the IPv4 header checksum or the ICMPv6 checksum is right, by scapy; null where there is none
Needs scapy (Debian: python3-scapy).
"""

import json
import struct
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.layers.l2 import Ether

TAGS = (0x8100, 0x88A8, 0x9100)


def ip_packet(frame):
    """The IP packet in a frame with any number of tags, without Ethernet padding."""
    at = 12
    while struct.unpack_from("!H", frame, at)[0] in TAGS:
        at += 4
    packet = frame[at + 2:]
    if packet[0] >> 4 == 4:
        return packet[:struct.unpack_from("!H", packet, 2)[0]]
    return packet[:40 + struct.unpack_from("!H", packet, 4)[0]]


def udp_offset_ipv6(packet):
    """Where UDP begins behind extension headers; None for another upper layer."""
    header, at = packet[6], 40
    while header != 17:
        if header == 44:
            size = 8
        elif header == 51:
            size = (packet[at + 1] + 2) * 4
        elif header in (0, 43, 60):
            size = (packet[at + 1] + 1) * 8
        else:
            return None
        header, at = packet[at], at + size
    return at


def icrc_ipv6(packet, udp, with_extension_headers):
    """CRC-32 over 8 octets of ones and the packet, what may change on the way as ones, without the ICRC itself."""
    end = udp + struct.unpack_from("!H", packet, udp + 4)[0] - 4
    fixed = bytearray(packet[:40])
    fixed[0] |= 0x0F
    fixed[1:4] = b"\xff\xff\xff"
    fixed[7] = 0xFF
    transport = bytearray(packet[udp:end])
    transport[6:8] = b"\xff\xff"
    transport[12] = 0xFF
    extension = packet[40:udp] if with_extension_headers else b""
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(fixed) + extension + bytes(transport)))


def opinion(frame):
    packet = ip_packet(frame)
    result = {"icrc": None, "icrc_without": None, "checksum": None}
    if packet[0] >> 4 == 4:
        ip = IP(packet)
        rebuilt = ip.copy()
        del rebuilt.chksum
        header = ip.ihl * 4
        result["checksum"] = bytes(rebuilt)[:header] == packet[:header]
        if UDP in ip and BTH in ip:
            result["icrc"] = ip[BTH].compute_icrc(b"").hex()
        return result
    udp = udp_offset_ipv6(packet)
    if udp is not None:
        result["icrc"] = icrc_ipv6(packet, udp, True).hex()
        result["icrc_without"] = icrc_ipv6(packet, udp, False).hex()
        return result
    message = packet[40:]
    sent = struct.unpack_from("!H", message, 2)[0]
    result["checksum"] = in6_chksum(58, IPv6(packet), message[:2] + b"\0\0" + message[4:]) == sent
    return result


def main():
    for line in sys.stdin:
        print(json.dumps(opinion(bytes.fromhex(line.strip()))))


main()
