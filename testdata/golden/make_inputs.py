#!/usr/bin/python3
"""Makes the in.pcap of every golden case, with scapy and zlib: no code of cnpgate is in the inputs.

Usage: make_inputs.py [DIRECTORY]

Writes DIRECTORY/CASE/in.pcap for each case; DIRECTORY is the script's own folder unless given. The same every time.
"""
import logging
import os
import struct
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, ICMPv6EchoRequest, PadN
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

logging.getLogger("scapy").setLevel(logging.ERROR)  # it warns of a BTH without UDP, of which only the header is used
HERE = os.path.dirname(os.path.abspath(__file__))
CAPTURES = os.path.join(HERE, "..", "captures")
START = 1_700_000_000 * 10**9
US = 1000

INSIDE, OUTSIDE = "02:00:00:00:00:0a", "02:00:00:00:00:0b"  # routers on the two sides
A4, B4, Z4 = "10.1.0.1", "10.1.0.2", "10.9.0.9"            # two senders in the data centre, a receiver beyond the WAN
A6, B6, Z6 = "fd00:1::1", "fd00:1::2", "fd00:9::9"
NOT_ECT, ECT1, ECT0, CE = range(4)
WRITE, READ_REQUEST, ACK, UD, CNP = 0x07, 0x0c, 0x11, 0x64, 0x81


def roce(src, dst, qp, size=976, ecn=ECT0, dscp=26, op=WRITE, psn=0, tags=(), source_qp=None, resv=0, port=49152, options=(), trace=None):
    """A RoCEv2 frame of size octets with a right ICRC; options are (type, data) of a Destination Options header.

    trace is (IOAM-Opt-Type, IOAM Trace Option Data) of a Hop-by-Hop Options header, on a 4-octet boundary.
    """
    inward = src in (Z4, Z6)
    frame = Ether(src=OUTSIDE if inward else INSIDE, dst=INSIDE if inward else OUTSIDE)
    for tpid, vid, prio in tags:
        frame.lastlayer().type = tpid
        frame = frame / (Dot1AD if tpid == 0x88a8 else Dot1Q)(vlan=vid, prio=prio)
    v6 = ":" in src
    extension = b""
    if options:
        body = b"".join(bytes((kind, len(data))) + data for kind, data in options)
        pad = -(len(body) + 2) % 8
        if pad:
            body += (b"\0" if pad == 1 else bytes((1, pad - 2)) + bytes(pad - 2))
        extension = bytes((17, (len(body) + 2) // 8 - 1)) + body
    following = 60 if extension else 17
    if trace:
        body = bytes((1, 0, 0x31, 2 + len(trace[1]), 0, trace[0])) + trace[1]
        body += b"\1\2\0\0" if len(body) % 8 == 2 else b""
        extension = bytes((following, (len(body) + 2) // 8 - 1)) + body + extension
        following = 0
    bth = BTH(opcode=op, pkey=0xffff, becn=op == CNP, resv6=resv, dqpn=qp, psn=psn, ackreq=0)
    extended = {UD: struct.pack("!II", 0x11111111, source_qp or 0), ACK: bytes(4), READ_REQUEST: bytes(16)}.get(op, b"")
    head = len(frame) + (40 if v6 else 20) + len(extension)
    payload = bytes(n & 0xff for n in range(size - head - 8 - 12 - len(extended) - 4))
    datagram = size - head
    if not v6:
        packet = IP(src=src, dst=dst, tos=dscp << 2 | ecn, ttl=64, id=psn, flags="DF") / UDP(sport=port, dport=4791, chksum=0)
        return bytes(frame / packet / bth / Raw(extended + payload))
    ip = IPv6(src=src, dst=dst, tc=dscp << 2 | ecn, hlim=64, nh=following, plen=len(extension) + datagram)
    udp = struct.pack("!HHHH", port, 4791, datagram, 0)
    transport = bytes(bth)[:12] + extended + payload
    masked = b"\xff" * 8 + b"\x6f\xff\xff\xff" + bytes(ip)[4:7] + b"\xff" + bytes(ip)[8:40] + extension
    masked += udp[:6] + b"\xff\xff" + transport[:4] + b"\xff" + transport[5:]
    return bytes(frame / ip) + extension + udp + transport + struct.pack("<I", zlib.crc32(masked))


def tcp(src, dst, size=976, ecn=ECT0, dscp=0):
    ip = IPv6(src=src, dst=dst, tc=dscp << 2 | ecn) if ":" in src else IP(src=src, dst=dst, tos=dscp << 2 | ecn)
    frame = Ether(src=INSIDE, dst=OUTSIDE) / ip / TCP(sport=5001, dport=5001, flags="A")
    return bytes(frame / Raw(bytes(size - len(frame))))


def every(us, frames, at=0):
    """The frames one by one, so many microseconds apart."""
    return [(at + i * us, f) for i, f in enumerate(frames)]


def cut(name, first, last):
    """Frames of a capture of real traffic, with their distances in time."""
    with open(os.path.join(CAPTURES, name + ".pcap"), "rb") as f:
        data = f.read()
    at, out = 24, []
    while at < len(data):
        sec, usec, size, _ = struct.unpack_from("<IIII", data, at)
        out.append((sec * 10**6 + usec, data[at + 16:at + 16 + size]))
        at += 16 + size
    out = out[first:last]
    return [(t - out[0][0], f) for t, f in out]


def uncongested():
    return cut("rc_write_v4", 17, 38) + [(t + 10**6, f) for t, f in cut("rc_pingpong_v6", 8, 30)]


def marking():
    burst = [roce(A4, Z4, 100, psn=n) for n in range(4)]
    burst += [roce(A4, Z4, 100, ecn=e, psn=4 + e) for e in (NOT_ECT, ECT1, ECT0, CE)]
    burst += [tcp(A4, Z4), tcp(A6, Z6, ecn=ECT1), tcp(A6, Z6, ecn=NOT_ECT)]
    burst += [roce(A6, Z6, 200, ecn=e, psn=e) for e in (NOT_ECT, ECT1, ECT0, CE)]
    inward = [roce(Z4, A4, 300, psn=n) for n in range(6)]
    return sorted(every(1, burst) + every(1, inward, 50000))


def fast_cnp():
    frames = [roce(A6, Z6, 0xabc0de, psn=n, port=50001) for n in range(10)]
    frames[5] = roce(A6, Z6, 0xabc0de, psn=5, port=50001, options=[(0x1e, b"abc")])
    return every(1, frames) + every(1, [roce(A6, Z6, 0xabc0de, ecn=NOT_ECT, psn=100 + n, port=50001) for n in range(2)], 2600)


def fast_cnp_trace():
    def ioam(node_len, trace_type, nodes):
        return struct.pack("!HHI", 1, node_len << 11, trace_type << 8) + nodes
    two = (0, ioam(2, 0xc00000, bytes(8) + bytes.fromhex("3e00000700010002")))
    three = (1, ioam(1, 0x800000, bytes.fromhex("3d000009" "3e000008" "3f000007")))
    longest = (0, ioam(3, 0xe00000, bytes(range(228))))
    too_long = (0, ioam(1, 0x800000, bytes(range(232))))
    other = (2, bytes(8))  # proof of transit
    return [(100_000 * n + i, roce(A6, Z6, 0xabc0de, psn=6 * n + i, port=50001, trace=trace))
            for n, trace in enumerate((two, three, longest, too_long, other)) for i in range(6)]


def long_haul():
    return every(1, [roce(A4, Z4, 200, psn=n, port=50001) for n in range(10)]) + \
        every(1, [roce(B6, Z6, 0x654321, psn=n, port=50002) for n in range(10)], 100_000) + \
        every(1, [roce(B4, Z4, 201, psn=n) for n in range(10)], 200_000)  # of no known source QP


def long_haul_ud():
    return every(1, [roce(A6, Z6, 0x777, op=UD, source_qp=0x888, psn=n) for n in range(8)]) + \
        every(1, [roce(A6, Z6, 1, op=UD, source_qp=1, psn=n) for n in range(8)], 100_000)


def ud_forged():
    def datagrams(source_qp, at, src=A6, dst=Z6, n=8):
        return every(1, [roce(src, dst, 0x777, op=UD, source_qp=source_qp, psn=k) for k in range(n)], at)
    end = [roce(Z6, A6, qp) for qp in (0x889, 0x88a)]
    return datagrams(0x888, 0) + datagrams(0x889, 100_000) + [(200_000, end[0])] + datagrams(0x889, 300_000) + \
        every(1, [roce(Z6, A6, 0x88a, op=UD, source_qp=0x777)], 400_000) + datagrams(0x88a, 500_000) + [(600_000, end[1])] + datagrams(0x88a, 700_000)


def proxy():
    tags = [(0x88a8, 100, 5), (0x8100, 200, 3)]
    flows = [(A4, Z4, 200, 976, ()), (B4, Z4, 201, 1414, ()), (A6, Z6, 202, 1414, tags), (B6, Z6, 0x654321, 976, ())]
    return [(100_000 * k + n, roce(src, dst, qp, psn=n, size=size, tags=with_tags, port=50001 + k))
            for k, (src, dst, qp, size, with_tags) in enumerate(flows) for n in range(10)]


def qinq():
    tags = [(0x88a8, 100, 5), (0x8100, 200, 3)]
    frames = [roce(A6, Z6, 500, tags=tags, psn=n) for n in range(8)]
    frames += [roce(A4, Z4, 501, tags=tags[1:], psn=n) for n in range(8)]
    return every(1, frames[:8]) + every(1, frames[8:], 100_000) + \
        every(1, [roce(A6, Z6, 500, tags=[(0x88a8, 101, 5), (0x8100, 200, 3)], psn=n) for n in range(8)], 200_000)


def tail_drop():
    return every(1, [roce(A4, Z4, 100, psn=n) for n in range(14)]) + every(1, [tcp(A4, Z4, size=60) for _ in range(70)], 100_000)


def jumbo():
    return every(1, [roce(A6, Z6, 100, size=9014, psn=n) for n in range(4)]) + [(5, roce(Z6, A6, 900, size=66 + 12, op=ACK))]


def non_ip():
    def arp(sender, target, tags=()):
        frame = Ether(src=INSIDE if sender == A4 else OUTSIDE, dst="ff:ff:ff:ff:ff:ff")
        for vid in tags:
            frame = frame / Dot1Q(vlan=vid)
        return bytes(frame / ARP(psrc=sender, pdst=target, hwsrc=INSIDE)).ljust(60, b"\0")
    pause = bytes.fromhex("0180c2000001") + b"\2\0\0\0\0\x0a" + bytes.fromhex("8808" "0001" "ffff") + bytes(42)
    pfc = pause[:14] + bytes.fromhex("0101" "0008") + bytes.fromhex("0000" * 3 + "ffff" + "0000" * 4) + bytes(26)
    lldp = bytes.fromhex("0180c200000e") + b"\2\0\0\0\0\x0a" + bytes.fromhex("88cc" "0207040200000000aa" "0403073131" "06020078" "0000")
    stp = bytes.fromhex("0180c2000000") + b"\2\0\0\0\0\x0a" + bytes.fromhex("0026" "424203") + bytes(35) + bytes(8)
    return every(10, [arp(A4, Z4), arp(Z4, A4), arp(A4, Z4, (7,)), pause, pfc, lldp, stp, b"\2" * 6, b""])


def malformed():
    good4, good6 = bytearray(roce(A4, Z4, 100, size=120)), bytearray(roce(A6, Z6, 100, size=120))
    frames = []

    def broken(of, at, octets):
        b = bytearray(of)
        b[at:at + len(octets)] = octets
        frames.append(bytes(b))
    broken(good4, 14, b"\x65")               # version 6 behind EtherType IPv4
    broken(good4, 14, b"\x41")               # an IPv4 header of 4 octets
    broken(good4, 16, b"\xff\xff")           # longer than the frame
    broken(good4, 16, b"\0\x10")             # shorter than its header
    broken(good4, 20, b"\x20\0")             # a fragment
    broken(good4, 24, b"\0\0")               # a wrong header checksum
    broken(good4, 38, b"\xff\xff")           # UDP longer than IP
    broken(good4, 38, b"\0\x07")             # UDP shorter than its header
    broken(good4, 43, b"\x01")               # a transport header version that isn't 0
    broken(good4, 42, b"\xff")               # an opcode that nobody has defined
    broken(good4, 116, b"\0\0\0\0")          # a wrong ICRC
    broken(good6, 18, b"\xff\xff")           # longer than the frame
    broken(good6, 18, b"\0\0")               # a jumbogram's length
    broken(good6, 20, b"\x3c")               # the UDP header taken for an extension header that runs past the packet
    frames.append(bytes(good4[:30]))         # cut in the IPv4 header
    frames.append(bytes(good6[:50]))         # cut in the IPv6 header
    frames.append(bytes(good4[:12]))         # a runt
    frames.append(good4[:12] + b"\x81\0\0\1" * 3 + bytes(good4[12:]))  # three tags
    return every(1000, frames)


def domain():
    fast = (0x9e, b"\xfd\0\0\x09" + bytes(11) + b"\x09")
    kinds = lambda src, dst: [
        roce(src, dst, 100, size=14 + 40 + 40, op=CNP, dscp=48, ecn=NOT_ECT),                     # a receiver's standard CNP
        roce(src, dst, 100, size=14 + 40 + 24 + 40, op=CNP, dscp=48, ecn=NOT_ECT, options=[fast]),  # Fast CNP
        roce(src, dst, 100, size=14 + 40 + 36, op=CNP, dscp=48, ecn=NOT_ECT, resv=0x20),           # Long-haul CNP
        bytes(Ether(src=OUTSIDE, dst=INSIDE) / IPv6(src=src, dst=dst) / ICMPv6EchoRequest(type=200, data=bytes(12))),
        bytes(Ether(src=OUTSIDE, dst=INSIDE) / IPv6(src=src, dst=dst) / UDP(sport=1, dport=1022) / Raw(bytes(80))),
    ]
    stranger, friend = "fd00:6::6", "fd00:8::8"
    frames = kinds(stranger, A6) + kinds(friend, A6) + kinds(A6, stranger) + kinds(A6, Z6)
    frames += [roce(stranger, A6, 100, size=200), bytes(Ether(src=OUTSIDE, dst=INSIDE) / IPv6(src=stranger, dst=A6) / ICMPv6EchoRequest())]
    return every(1000, frames)


def never_answered():
    fast = (0x9e, b"\xfd\0\0\x09" + bytes(11) + b"\x09")
    return every(1, [frame for n in range(12) for frame in (
        roce(A6, Z6, 100, size=62 + 16 + 16, op=CNP),
        roce(A6, Z6, 100, size=62 + 24 + 16 + 16, op=CNP, options=[fast]),
        roce(A6, Z6, 100, size=62 + 16 + 12, op=CNP, resv=0x20),
        roce(A6, Z6, 100, size=62 + 16 + 4, op=ACK, psn=n),
        roce(A6, Z6, 100, size=62 + 16 + 16, op=READ_REQUEST, psn=n))])


def not_roce():
    return every(1, [tcp(A6, Z6) for _ in range(6)] + [roce(A6, Z6, 100, psn=n) for n in range(7)])


def limits():
    frames = []
    for n in range(45):  # two senders with two flows each, at twice the rate of the line
        flows = ((A6, 100), (B6, 100), (A6, 101), (B6, 101))
        frames += [(n * 400 + i, roce(src, Z6, qp, psn=n, size=176)) for i, (src, qp) in enumerate(flows)]
    return frames


def classes():
    bulk = [roce(A6, Z6, 100, dscp=26, psn=n) for n in range(5)]
    urgent = [roce(B6, Z6, 101, dscp=48, psn=n) for n in range(5)]
    other = [tcp(A6, Z6, dscp=0) for _ in range(3)]
    return every(1, bulk) + every(1, other, 100) + every(1, urgent, 200)


def learned_cm():
    released = cut("cm_rping_v6", 123, 125)
    before, after = cut("cm_rping_v6", 0, 60), cut("cm_rping_v6", 60, 72)
    return before + [(t + 48_000, f) for t, f in released] + [(t + 51_000, f) for t, f in after]


def learned_read():
    return cut("rc_read_v4", 19, 60)


CASES = {f.__name__.replace("_", "-"): f for f in (
    uncongested, marking, fast_cnp, fast_cnp_trace, long_haul, long_haul_ud, ud_forged, proxy, qinq, tail_drop, jumbo, non_ip, malformed, domain, never_answered, not_roce,
    limits, classes, learned_cm, learned_read)}
CASES["long-haul-icmpv6"] = CASES["long-haul"]


def main(directory):
    for name, frames in CASES.items():
        os.makedirs(os.path.join(directory, name), exist_ok=True)
        with open(os.path.join(directory, name, "in.pcap"), "wb") as f:
            f.write(struct.pack("<IHHIIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 1))
            for at, frame in frames():
                ns = START + at * US
                f.write(struct.pack("<IIII", ns // 10**9, ns % 10**9, len(frame), len(frame)) + frame)


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    main(sys.argv[1] if len(sys.argv) > 1 else HERE)
