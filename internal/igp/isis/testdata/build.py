"""Builds two LSPs with scapy and writes them as hexadecimal, a line each, without the Ethernet and LLC headers."""
import socket
import struct

from scapy.contrib.isis import (
    ISIS_AreaEntry, ISIS_AreaTlv, ISIS_CommonHdr, ISIS_ExtendedIpPrefix, ISIS_ExtendedIpReachabilityTlv, ISIS_GenericSubTlv, ISIS_GenericTlv,
    ISIS_Ipv6Prefix, ISIS_Ipv6ReachabilityTlv, ISIS_L1_LSP, ISIS_L2_LSP, ISIS_ProtocolsSupportedTlv, ISIS_TERouterIDTlv)

ipv4 = socket.inet_aton("192.0.2.9")
ipv6 = socket.inet_pton(socket.AF_INET6, "2001:db8::9")


def topology(tlv, entries):
    """The TLV of topology 2: scapy has no class for it, but the entries are those of the TLV without a topology."""
    return ISIS_GenericTlv(type=tlv, val=struct.pack(">H", 2) + b"".join(bytes(e) for e in entries))


def lsp(layer):
    v4 = [
        ISIS_ExtendedIpPrefix(metric=10, pfx="198.51.100.0/24", subtlvindicator=1, subtlvs=[
            ISIS_GenericSubTlv(type=4, val=b"\x21"), ISIS_GenericSubTlv(type=11, val=ipv4), ISIS_GenericSubTlv(type=200, val=b"xyz")]),
        ISIS_ExtendedIpPrefix(metric=20, pfx="203.0.113.0/25", updown=1)]
    v6 = [
        ISIS_Ipv6Prefix(metric=30, pfx="2001:db8:a::/48", subtlvindicator=1, subtlvs=[
            ISIS_GenericSubTlv(type=4, val=b"\x01"), ISIS_GenericSubTlv(type=12, val=ipv6)]),
        ISIS_Ipv6Prefix(metric=40, pfx="2001:db8:b::/48", external=1, subtlvindicator=1, subtlvs=[ISIS_GenericSubTlv(type=4, val=b"\xfe")])]
    return ISIS_CommonHdr() / layer(lifetime=1000, lspid="0000.0000.0009.00-00", seqnum=2, typeblock=3, tlvs=[
        ISIS_TERouterIDTlv(routerid="192.0.2.9"), ISIS_AreaTlv(areas=[ISIS_AreaEntry(areaid="49.0001")]), ISIS_ProtocolsSupportedTlv(nlpids=["IPv4", "IPv6"]),
        ISIS_ExtendedIpReachabilityTlv(pfxs=v4), topology(235, v4), ISIS_Ipv6ReachabilityTlv(pfxs=v6), topology(237, v6)])


for layer in ISIS_L1_LSP, ISIS_L2_LSP:
    print(bytes(lsp(layer)).hex())
