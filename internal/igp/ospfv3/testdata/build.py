"""Builds extended LSAs in a Link State Update of OSPFv3 and writes the OSPF packet as hexadecimal. The headers and checksums are scapy's; scapy has
no class for extended LSAs, so their bodies are built here."""
import socket
import struct

from scapy.contrib.ospf import OSPFv3_Hdr, OSPFv3_LSA_Hdr, ospf_lsa_checksum
from scapy.packet import Raw


def tlv(number, value):
    return struct.pack(">HH", number, len(value)) + value + bytes(-len(value) % 4)


def prefix(number, upper, metric, text, length):
    address = socket.inet_pton(socket.AF_INET6, text)[:(length + 31) // 32 * 4]
    subs = tlv(37, struct.pack(">I", 0x20000000)) + tlv(28, socket.inet_pton(socket.AF_INET6, "2001:db8::9")) + tlv(99, b"xyz")
    return tlv(number, struct.pack(">IBBH", upper << 24 | metric, length, 1, 0) + address + subs)


def lsa(kind, number, body):
    b = bytearray(bytes(OSPFv3_LSA_Hdr(age=1, type=kind, id=number, adrouter="192.0.2.9", seq=0x80000001, len=20 + len(body))) + body)
    b[16:18] = bytes(2)
    checksum = ospf_lsa_checksum(bytes(b))
    b[16:18] = checksum if isinstance(checksum, bytes) else struct.pack(">H", checksum)
    return bytes(b)


reference = struct.pack(">HHI4s", 0, 0x2001, 0, socket.inet_aton("192.0.2.9"))
lsas = [
    lsa(0xa029, "0.0.0.0", reference + prefix(6, 0, 10, "2001:db8:c::", 48)),
    lsa(0xa023, "0.0.0.1", prefix(3, 0, 20, "2001:db8:d::", 64)),
    lsa(0xc025, "0.0.0.2", prefix(5, 4, 30, "::", 0) + tlv(77, b"other")),
]
body = struct.pack(">I", len(lsas)) + b"".join(lsas)
print(bytes(OSPFv3_Hdr(src="192.0.2.2", area="0.0.0.0", type=4, len=16 + len(body), chksum=0) / Raw(body)).hex())
