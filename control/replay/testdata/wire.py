"""Reads captures and frames, and builds notifications, with code that shares nothing with cnpgate.

Numbers and layouts are from the specifications: pcap, IEEE 802.1Q, RFC 791, RFC 8200, IBTA Annex A17 and table 38, draft-tian 6,
draft-xiao-rtgwg-rocev2-fast-cnp-05 4, draft-xiao-rtgwg-proxy-congestion-notification-03 4.
"""
import ipaddress
import struct
import zlib

TAGS = (0x8100, 0x88a8, 0x9100)
ROCE, CNP = 4791, 0x81


def read_pcap(path):
    """Frames of a classic little-endian Ethernet capture with nanoseconds or microseconds: (ns, octets at hand, wire length)."""
    with open(path, "rb") as f:
        data = f.read()
    magic, _, _, _, _, _, link = struct.unpack_from("<IHHIIII", data)
    unit = {0xa1b23c4d: 1, 0xa1b2c3d4: 1000}[magic]
    if link != 1:
        raise ValueError("link type %d" % link)
    at, frames = 24, []
    while at < len(data):
        sec, sub, captured, length = struct.unpack_from("<IIII", data, at)
        at += 16
        if at + captured > len(data):
            raise ValueError("cut short")
        frames.append((sec * 10**9 + sub * unit, data[at:at + captured], length))
        at += captured
    return frames


class Frame:
    """What a gateway may know of a frame; family 0 without a sound IP header."""

    def __init__(self, octets, length):
        self.octets, self.length = octets, length
        self.family = self.dscp = self.ecn = self.proto = 0
        self.vlans, self.sender = (), None
        self.src = self.dst = self.sport = self.dport = None
        self.roce = self.mac_control = False
        self.l3 = 14
        if len(octets) < 14:
            return
        kind = struct.unpack_from("!H", octets, 12)[0]
        while kind in TAGS and len(self.vlans) < 2 and len(octets) >= self.l3 + 4:
            tci, kind = struct.unpack_from("!HH", octets, self.l3)
            self.vlans += (tci & 0xfff,)
            self.l3 += 4
        self.mac_control = kind == 0x8808
        body = octets[self.l3:]
        if kind == 0x0806 and body[:6] == b"\0\1\x08\0\6\4" and len(body) >= 28:
            self.sender = ipaddress.IPv4Address(body[14:18])
        elif kind == 0x0800 and len(body) >= 20 and body[0] >> 4 == 4:
            self.ipv4(body)
        elif kind == 0x86dd and len(body) >= 40 and body[0] >> 4 == 6:
            self.ipv6(body)

    def ipv4(self, h):
        self.sender = ipaddress.IPv4Address(h[12:16])
        header, total = (h[0] & 15) * 4, struct.unpack_from("!H", h, 2)[0]
        if header < 20 or total < header or self.l3 + total > self.length:
            return
        self.family, self.dscp, self.ecn = 4, h[1] >> 2, h[1] & 3
        self.src, self.dst = self.sender, ipaddress.IPv4Address(h[16:20])
        if struct.unpack_from("!H", h, 6)[0] & 0x3fff == 0:
            self.upper(h[9], self.l3 + header, self.l3 + total)

    def ipv6(self, h):
        self.sender = ipaddress.IPv6Address(h[8:24])
        word, payload, following = struct.unpack_from("!IHB", h)
        end = self.l3 + 40 + payload
        if payload == 0 or end > self.length:
            return
        self.family, self.dscp, self.ecn = 6, word >> 22 & 63, word >> 20 & 3
        self.src, self.dst = self.sender, ipaddress.IPv6Address(h[24:40])
        self.options, self.trace, at = [], None, self.l3 + 40
        while following in (0, 43, 60):
            size = (self.octets[at + 1] + 1) * 8
            if following == 60:
                self.options += options(self.octets[at + 2:at + size])
            if following == 0:
                self.trace = next(filter(is_trace, options(self.octets[at + 2:at + size])), (0, None))[1]
            following, at = self.octets[at], at + size
        if following != 44:
            self.upper(following, at, end)

    def upper(self, proto, at, end):
        self.proto, self.l4, self.end = proto, at, end
        if proto != 17 or len(self.octets) < at + 8 or end < at + 8:
            return
        self.sport, self.dport, length, _ = struct.unpack_from("!HHHH", self.octets, at)
        if self.dport == ROCE and at + length <= end:
            self.bth(at + 8, at + length - 4)

    def bth(self, at, icrc):
        b = self.octets
        if len(b) < at + 12:
            return
        known = opcode(b[at])
        if known is None or b[at + 1] & 15 or at + 12 + known[0] > min(icrc, len(b)):
            return
        self.roce, self.bth_at, self.icrc = True, at, icrc
        self.opcode, self.data = b[at], known[1]
        self.flags, self.qp = b[at + 4], int.from_bytes(b[at + 5:at + 8], "big")
        self.psn = int.from_bytes(b[at + 9:at + 12], "big")
        self.transport = ("RC", "UC", "RD", "UD", "CNP", "XRC")[b[at] >> 5]
        self.source_qp = int.from_bytes(b[at + 17:at + 20], "big") if b[at] >> 5 == 3 else 0

    def icrc_is_right(self):
        """None if it can't be checked."""
        if not self.roce or len(self.octets) < self.icrc + 4:
            return None
        return self.octets[self.icrc:self.icrc + 4] == icrc(self.octets[self.l3:self.icrc], self.bth_at - self.l3)


def options(b):
    """The options of a Hop-by-Hop or Destination Options header (RFC 8200 4.2)."""
    while b:
        if b[0] == 0:
            b = b[1:]
            continue
        yield b[0], b[2:2 + b[1]]
        b = b[2 + b[1]:]


def is_trace(option):
    """An IOAM option (RFC 9486 3) with a pre-allocated or incremental trace: a reserved octet, the type, 8 octets, whole words."""
    kind, value = option
    return kind in (0x11, 0x31) and len(value) >= 10 and len(value) % 4 == 2 and value[1] < 2


def fast_cnp_option(f, g):
    """The Destination Options header of a Fast CNP about f."""
    if f.trace is None or trace_too_long(f):
        return struct.pack("!BBBB", 17, 2, g["option"], 16) + f.dst.packed + b"\1\2\0\0"
    data = b"\0" + f.trace[1:] + f.dst.packed
    header = b"\1\0" + struct.pack("!BB", g["trace option"], len(data)) + data
    if len(header) % 8 == 2:
        header += b"\1\2\0\0"
    return struct.pack("!BB", 17, (len(header) + 2) // 8 - 1) + header


def trace_too_long(f):
    """Whether a Fast CNP about f needs option 1 though the data packet has a trace: 8 bits of length, 2 + 8 + node data + 16."""
    return f.trace is not None and len(f.trace) + 16 > 255


def opcode(code):
    """Length of the extended transport headers and whether data follows; None for an opcode without a meaning (IBTA table 38)."""
    aeth, reth, atomic, immediate, deth = 4, 16, 28, 4, 8
    if code == CNP:
        return 0, False
    service, operation = code >> 5, code & 31
    if service == 3:
        return {4: (deth, True), 5: (deth + immediate, True)}.get(operation)
    if service > 1:
        return None if service in (4, 6, 7) else 1 / 0  # RD and XRC: not needed, and not to be taken for something else
    table = {0: (0, True), 1: (0, True), 2: (0, True), 3: (immediate, True), 4: (0, True), 5: (immediate, True),
             6: (reth, True), 7: (0, True), 8: (0, True), 9: (immediate, True), 10: (reth, True), 11: (reth + immediate, True)}
    if service == 0:
        table.update({12: (reth, False), 13: (aeth, True), 14: (0, True), 15: (aeth, True), 16: (aeth, True), 17: (aeth, False),
                      18: (aeth + 8, False), 19: (atomic, False), 20: (atomic, False), 22: (4, True), 23: (4, True)})
    return table.get(operation)


def icrc(packet, bth, extensions=True):
    """The ICRC of an IP packet without its ICRC; bth is the BTH's offset in it."""
    masked = bytearray(packet)
    udp = bth - 8
    if masked[0] >> 4 == 4:
        masked[1] = masked[8] = masked[10] = masked[11] = 0xff
    else:
        masked[0:4], masked[7] = b"\x6f\xff\xff\xff", 0xff
    masked[udp + 6] = masked[udp + 7] = masked[bth + 4] = 0xff
    if masked[0] >> 4 == 6 and not extensions:
        del masked[40:udp]
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def checksum(b):
    b += b"\0" * (len(b) & 1)
    total = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def mark_ce(f):
    """The frame with CE, and its IPv4 header checksum recomputed if it was right."""
    b, at = bytearray(f.octets), f.l3
    if f.family == 6:
        b[at + 1] |= 0x30
        return bytes(b)
    size = (b[at] & 15) * 4
    if checksum(bytes(b[at:at + size])):
        raise ValueError("a wrong IPv4 header checksum before marking: not for this model")
    b[at + 1] |= 3
    b[at + 10:at + 12] = b"\0\0"
    b[at + 10:at + 12] = struct.pack("!H", checksum(bytes(b[at:at + size])))
    return bytes(b)


def notification(kind, f, g, qp, level, action, parameter, metric):
    """The whole frame of a notification about f. g is the gateway's part of the configuration."""
    ethernet = f.octets[6:12] + f.octets[0:6] + f.octets[12:f.l3]
    fields = struct.pack("!BBHII", level, action << 6, parameter, qp or 0, metric)
    if kind == "long-haul-cnp-icmpv6":
        message = struct.pack("!BBH", g["icmpv6"], 0, 0) + fields
        pseudo = g["ipv6"].packed + f.src.packed + struct.pack("!II", len(message), 58)
        message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:]
        return ethernet + ipv6(f, g, 58, len(message)) + message
    extensions, bits, dqp, behind = b"", 0x60, qp, fields
    if kind == "fast-cnp":
        extensions = fast_cnp_option(f, g)
        bits, dqp, behind = 0x40, f.qp, bytes(16)
    udp = struct.pack("!HHHH", f.sport, ROCE, 8 + 12 + len(behind) + 4, 0)
    udp += struct.pack("!BBHII", CNP, 0, 0xffff, bits << 24 | dqp, 0) + behind
    if f.family == 6:
        ip = ipv6(f, g, 60 if extensions else 17, len(extensions) + len(udp) + 4) + extensions
    else:
        ip = ipv4_to(f.src, g, len(udp) + 4)
    return ethernet + ip + udp + icrc(ip + udp, len(ip) + 8, g["extensions"])


def ipv6(f, g, following, length):
    return ipv6_to(f.src, g, following, length)


def ipv6_to(to, g, following, length):
    return struct.pack("!IHBB", 6 << 28 | g["dscp"] << 22, length, following, 64) + g["ipv6"].packed + to.packed


def ipv4_to(to, g, length):
    ip = struct.pack("!BBHHHBBH", 0x45, g["dscp"] << 2, 20 + length, 0, 0x4000, 64, 17, 0) + g["ipv4"].packed + to.packed
    return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]


def proxy_notification(f, g, to, level):
    """The whole frame of a notification about f to a proxy (draft-xiao-proxy 4; the layout is in docs/wire-formats.md)."""
    ethernet = f.octets[6:12] + f.octets[0:6] + f.octets[12:f.l3 - 2] + struct.pack("!H", 0x0800 if to.version == 4 else 0x86dd)
    message = struct.pack("!BBHHH", f.family << 4 | level * 8 // 256, 17, 0, f.sport, ROCE) + f.src.packed + f.dst.packed + f.octets[f.l3:f.end]
    message = message[:576 - 20 - 8 if to.version == 4 else 1280 - 40 - 8]
    own, length = g["ipv%d" % to.version], 8 + len(message)
    udp = struct.pack("!HHHH", f.sport, g["proxy"], length, 0) + message
    pseudo = own.packed + to.packed + struct.pack("!II", length, 17)
    udp = udp[:6] + struct.pack("!H", checksum(pseudo + udp) or 0xffff) + udp[8:]
    return ethernet + (ipv4_to(to, g, length) if to.version == 4 else ipv6_to(to, g, 17, length)) + udp
