#!/usr/bin/python3
"""Judges replays with code that shares nothing with cnpgate: scapy, zlib, and a model of a gateway of its own.

Usage: oracle.py CASE...

Each CASE is a directory with facts.json (the configuration as cnpgate resolved it, the fabric prefixes, who may be told by what,
and, where known, the true QPs), in.pcap, forwarded.pcap, emitted.pcap and report.json. Prints what is wrong, and what was checked;
the exit status is 1 if anything was wrong or no case was given.
"""
import collections
import ipaddress
import json
import os
import struct
import sys

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Raw, bind_layers

sys.dont_write_bytecode = True  # not into the source tree
import model  # noqa: E402
import wire  # noqa: E402

bind_layers(Ether, Dot1AD, type=0x9100)
SECOND = 10**9
ECT = (1, 2)
SCAPY_ONE_IN = 20  # of the marked frames: it takes milliseconds for each; zlib takes all of them


class Case:
    def __init__(self, directory):
        with open(os.path.join(directory, "facts.json")) as f:
            self.facts = json.load(f)
        with open(os.path.join(directory, "report.json")) as f:
            self.report = json.load(f)
        self.taken, self.forwarded, self.emitted = (
            wire.read_pcap(os.path.join(directory, n + ".pcap")) for n in ("in", "forwarded", "emitted"))
        self.model = model.Gateway(self.facts)
        self.model.run(self.taken)
        self.seen = collections.Counter()
        self.wrong = []

    def expect(self, what, got, want):
        if got != want:
            self.wrong.append("%s: got %s, want %s" % (what, got, want))
        return got == want

    def check(self):
        for step in (self.sums, self.frames, self.same_as_model, self.flows, self.counters, self.rates, self.notifications, self.limits):
            step()
            if len(self.wrong) > 5:
                break  # the first ones tell the cause

    # --- what holds for any gateway

    def sums(self):
        """Every received frame is accounted for."""
        c = self.report["counters"]
        total = {k: sum(v.values()) if isinstance(v, dict) else v for k, v in c.items()}
        self.expect("received", total["received_packets_total"], len(self.taken))
        self.expect("forwarded", total["forwarded_packets_total"], len(self.forwarded))
        self.expect("sent", total["notifications_sent_total"], len(self.emitted))
        self.expect("queued at the end", total["queued_packets"], 0)
        self.expect("forwarded + dropped + consumed + queued", sum(total[k] for k in (
            "forwarded_packets_total", "dropped_packets_total", "consumed_packets_total", "queued_packets")), len(self.taken))

    def frames(self):
        """Every forwarded frame is a received one, in order within its direction and class, changed in nothing but CE."""
        waiting = collections.defaultdict(collections.deque)
        for _, octets, length in self.taken:
            f = wire.Frame(octets, length)
            waiting[self.lane(f)].append(f)
        for n, (_, octets, length) in enumerate(self.forwarded):
            f = wire.Frame(octets, length)
            lane = waiting[self.lane(f)]
            while lane and (lane[0].length != length or not self.grew_from(f, lane[0])):
                lane.popleft()  # dropped or consumed
            if not lane:
                self.wrong.append("forwarded frame %d is none that was received, or out of order" % (n + 1))
                return
            if lane.popleft().octets != octets:
                self.marked(n + 1, f)

    def lane(self, f):
        port = self.model.side(f)
        return port, self.model.queues[self.model.wan if port == self.model.fabric else self.model.fabric].class_of(f.dscp)

    @staticmethod
    def grew_from(out, taken):
        if out.octets == taken.octets:
            return True
        return taken.family != 0 and taken.ecn in ECT and out.octets == wire.mark_ce(taken)

    def marked(self, n, f):
        """Asks scapy about a frame that was marked."""
        self.seen["marked"] += 1
        self.expect("ECN of marked frame %d" % n, f.ecn, 3)
        if f.icrc_is_right() is not None:
            self.expect("ICRC of marked frame %d is right" % n, f.icrc_is_right(), True)
            self.seen["ICRCs of marked frames"] += 1
        if f.family == 4 and len(f.octets) == f.length and self.seen["marked"] % SCAPY_ONE_IN == 1:
            packet = Ether(f.octets)[IP]
            self.scapy_agrees("marked frame %d" % n, packet, f if f.roce else None)

    def scapy_agrees(self, what, ip, f):
        """Has scapy make the IPv4 header checksum, and the ICRC, once more."""
        header = ip.copy()
        del header.chksum
        self.expect("IPv4 header of " + what, bytes(ip)[:20].hex(), bytes(header)[:20].hex())
        if f is None or f.vlans or ip.ihl != 5:
            return
        w = bytes(ip)[:ip.len]
        bth = BTH(w[28:40])
        rebuilt = IP(w[:20]) / UDP(w[20:28]) / BTH(
            opcode=bth.opcode, solicited=bth.solicited, migreq=bth.migreq, padcount=bth.padcount, version=bth.version, pkey=bth.pkey,
            fecn=bth.fecn, becn=bth.becn, resv6=bth.resv6, dqpn=bth.dqpn, ackreq=bth.ackreq, resv7=bth.resv7, psn=bth.psn
        ) / Raw(w[40:-4])
        self.expect("ICRC by scapy of " + what, w[-4:].hex(), bytes(rebuilt)[-4:].hex())
        self.seen["ICRCs by scapy"] += 1

    def rates(self):
        """No port sends more than its rate in any second, each frame counting 24 octets more (and one frame on top)."""
        ports = self.facts["config"]["Ports"]
        for port in (self.model.fabric, self.model.wan):
            sent = sorted((at, length + 24) for (at, _, length), (_, _, _, p) in
                          [*zip(self.forwarded, self.model.forwarded), *zip(self.emitted, self.model.emitted)] if p == port)
            allowed, window, total = ports[port]["Rate"] * 1.01 / 8, collections.deque(), 0
            for at, octets in sent:
                while window and at - window[0][0] >= SECOND:
                    total -= window.popleft()[1]
                if total > allowed:
                    self.wrong.append("port %d sends %d octets in the second up to %d" % (port, total, at))
                    break
                window.append((at, octets))
                total += octets

    def notifications(self):
        gateway = self.facts["config"]["Gateway"]
        for n, (_, octets, length) in enumerate(self.emitted):
            what, f = "notification %d" % (n + 1), wire.Frame(octets, length)
            kind = self.model.notification(f)
            kind = "long-haul-cnp" if kind == "extended-cnp" else kind
            self.seen[kind] += 1
            self.expect(what + "'s source", str(f.src), gateway["IPv%d" % f.family])
            self.expect(what + "'s ECN, DSCP", (f.ecn, f.dscp), (0, self.model.build["dscp"]))
            granted = [(p.prefixlen, a) for p, a in self.model.endpoints if f.dst in p]
            if not granted or kind not in max(granted)[1] or kind not in self.model.enabled:
                self.wrong.append("%s, %s, goes to %s, which was not granted it" % (what, kind, f.dst))
            self.scapy_judges(what, kind, f)
            self.names_the_true_qp(what, kind, f)

    def scapy_judges(self, what, kind, f):
        packet = Ether(f.octets)
        if f.family == 4:
            self.scapy_agrees(what, packet[IP], f)
        if kind == "long-haul-cnp-icmpv6":
            message = bytearray(bytes(packet[IPv6])[40:])
            got = struct.unpack_from("!H", message, 2)[0]
            message[2:4] = b"\0\0"
            self.expect(what + "'s ICMPv6 checksum", got, in6_chksum(58, packet[IPv6], bytes(message)))
            return
        self.expect(what + "'s UDP checksum", packet[UDP].chksum, 0)
        self.expect(what + "'s BTH", (packet[BTH].opcode, packet[BTH].becn, packet[BTH].resv6),
                    (0x81, 1, 0x20 if kind == "long-haul-cnp" else 0))
        if self.model.build["extensions"]:
            self.expect(what + "'s ICRC is right", f.icrc_is_right(), True)

    def names_the_true_qp(self, what, kind, f):
        """Long-haul CNP: the source QP, in all places. Fast CNP: the QP and address of the receiver."""
        truth = self.facts.get("truth")
        at = f.l4 + 4 if kind == "long-haul-cnp-icmpv6" else f.bth_at + 12
        if kind == "fast-cnp":
            receiver = ipaddress.IPv6Address(self.receiver(f))
            qp, peer = f.qp, receiver
        else:
            qp, peer = struct.unpack_from("!I", f.octets, at + 4)[0], f.dst
            if kind == "long-haul-cnp":
                self.expect(what + "'s DestQP", f.qp, qp)
        self.expect(what + " is about a connection's QP", qp > 1, True)
        if truth is not None:
            self.expect("%s: QP %d at %s exists" % (what, qp, peer), [str(peer), qp] in truth, True)
            self.seen["true QPs"] += 1

    def receiver(self, f):
        """The address in a Fast CNP's option, which it ends with; None for other notifications."""
        types = self.model.build["option"], self.model.build["trace option"]
        return next((value[-16:] for kind, value in getattr(f, "options", []) if kind in types), None)

    def limits(self):
        """Limits hold on the line too, but for the time that a notification waits behind a frame of the fabric port's."""
        c = self.facts["config"]
        slack = (9216 + 24 + 256 * 150) * 8 * SECOND // c["Ports"][self.model.fabric]["Rate"] + 1
        interval = c["Ports"][self.model.wan]["PerFlow"]
        last, by_destination = {}, collections.defaultdict(list)
        for at, octets, length in self.emitted:
            f = wire.Frame(octets, length)
            about = (f.dst, self.receiver(f), f.vlans,
                     f.qp if f.roce else struct.unpack_from("!I", f.octets, f.l4 + 8)[0])
            if about in last and at - last[about] < interval - slack:
                self.wrong.append("two notifications of one flow are %d ns apart, want %d" % (at - last[about], interval))
            last[about] = at
            by_destination[f.dst].append(at)
        l = c["Notifications"]["Limits"]
        for who, times in by_destination.items():
            self.limit(who, times, l["PerDestination"], slack)
        self.limit("the port", [at for at, _, _ in self.emitted], l["PerPort"], slack)

    def limit(self, who, times, rate, slack):
        burst = -(-rate // 100)
        for i in range(burst, len(times)):
            if rate and times[i] - times[i - burst] + slack < SECOND // rate:
                self.wrong.append("more than %d a second, and %d at once, to %s" % (rate, burst, who))
                return

    # --- what the model says

    def same_as_model(self):
        for what, got, want in (("forwarded", self.forwarded, self.model.forwarded), ("emitted", self.emitted, self.model.emitted)):
            for n, (g, w) in enumerate(zip(got, want)):
                if not self.expect("%s frame %d" % (what, n + 1), (g[0], g[2], g[1].hex()), (w[0], w[2], w[1].hex())):
                    return
            self.expect("number of %s frames" % what, len(got), len(want))

    def flows(self):
        want = [(str(k[0]), str(k[1]), r.source_qp, k[2], "unknown" if r.source_qp is None else "confirmed", r.evidence, r.transport,
                 r.packets, r.bytes, r.marked, dict(r.notified)) for k, r in self.model.flows.items()]
        names = ("source_ip", "destination_ip", "source_qp", "destination_qp", "qp_state", "qp_evidence", "transport", "packets",
                 "bytes", "ecn_marked", "notifications")
        got = [tuple(f[n] for n in names) for f in self.report["flows"]]
        self.expect("flows", sorted(got, key=repr), sorted(want, key=repr))

    def counters(self):
        want = {(name, label): n for (name, label), n in self.model.counters.items() if n}
        got = {}
        for name, v in self.report["counters"].items():
            for label, n in (v.items() if isinstance(v, dict) else [(None, v)]):
                if n and name != "flows":
                    got[name, label] = n
        self.expect("counters", got, want)


def main(directories):
    failed, total = not directories, collections.Counter()
    for d in directories:
        try:
            case = Case(d)
            case.check()
            wrong = case.wrong
        except Exception as e:  # a broken case can break anything
            wrong = ["%s: %s" % (type(e).__name__, e)]
        else:
            total += case.seen
        total["cases"] += 1
        for w in wrong:
            failed = True
            print("%s: %s" % (os.path.basename(d), w[:2000]))
    print(json.dumps(dict(sorted(total.items()))))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
