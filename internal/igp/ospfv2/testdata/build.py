"""Builds an Extended Prefix Opaque LSA of AS scope with scapy, in a Link State Update, and writes the OSPF packet as hexadecimal."""
import socket
import struct

from scapy.contrib.ospf import OSPF_AS_Scope_Opaque_LSA, OSPF_Hdr, OSPF_LSUpd


def tlv(number, value):
    return struct.pack(">HH", number, len(value)) + value + bytes(-len(value) % 4)


def prefix(route, address, length, flags, subs):
    return tlv(1, struct.pack(">BBBB", route, length, 0, flags) + socket.inet_aton(address) + subs)


data = prefix(0, "198.51.100.0", 24, 0, tlv(11, struct.pack(">I", 0x20000000)) + tlv(5, socket.inet_aton("192.0.2.9")) + tlv(99, b"xyz"))
data += prefix(1, "203.0.113.7", 32, 0x40, tlv(11, struct.pack(">II", 0xdfffffff, 1)) + tlv(4, socket.inet_aton("192.0.2.8")))
data += tlv(7, b"other")
lsa = OSPF_AS_Scope_Opaque_LSA(age=1, id="7.0.0.1", adrouter="192.0.2.1", seq=0x80000001, data=data)
print(bytes(OSPF_Hdr(src="192.0.2.1", area="0.0.0.0") / OSPF_LSUpd(lsalist=[lsa])).hex())
