#!/usr/bin/python3
"""Judges replays with code that shares nothing with cnpgate: scapy, zlib, and a model of a gateway of its own.

Usage: oracle.py CASE...

Each CASE is a directory with facts.json (the configuration as cnpgate resolved it, the fabric prefixes, which format each
host accepts, and, where known, the true source QP of each flow), in.pcap, forwarded.pcap, emitted.pcap and report.json. Prints what is wrong, and what was checked;
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
import pairing  # noqa: E402
import wire  # noqa: E402

bind_layers(Ether, Dot1AD, type=0x9100)
SECOND = 10**9
ECT = (1, 2)
LEARNED = ("cm", "port", "psn")
SCAPY_ONE_IN = 20  # of the marked frames: it takes milliseconds for each; zlib takes all of them


def action(f):
    """The action of a Long-haul CNP; None for another notification."""
    if f.roce:
        return f.octets[f.l4 + 8 + 12 + 1] >> 6 if f.flags & 0x20 else None
    return f.octets[f.l4 + 4 + 1] >> 6 if f.proto == 58 else None


def invoking(f):
    """What a notification to a proxy says: its five-tuple and the invoking packet, as scapy reads it."""
    at = f.l4 + 8
    version, size = f.octets[at] >> 4, 16 if f.octets[at] >> 4 == 6 else 4
    src, dst = (ipaddress.ip_address(f.octets[at + 8 + n * size:at + 8 + (n + 1) * size]) for n in (0, 1))
    packet = (IPv6 if version == 6 else IP)(f.octets[at + 8 + 2 * size:f.end])
    return src, dst, struct.unpack_from("!HH", f.octets, at + 4), packet


class Case:
    def __init__(self, directory):
        with open(os.path.join(directory, "facts.json")) as f:
            self.facts = json.load(f)
        with open(os.path.join(directory, "report.json")) as f:
            self.report = json.load(f)
        self.taken, self.forwarded, self.emitted = (
            wire.read_pcap(os.path.join(directory, n + ".pcap")) for n in ("in", "forwarded", "emitted"))
        self.seen = collections.Counter()
        self.wrong = []
        self.truth = {(a, b, qp): source for a, b, qp, source in self.facts["pairs"]}
        self.model = model.Gateway(self.facts, self.claims)
        self.model.run(self.taken)

    def expect(self, what, got, want):
        if got != want:
            self.wrong.append("%s: got %s, want %s" % (what, got, want))
        return got == want

    def check(self):
        for step in (self.sums, self.frames, self.source_qps, self.same_as_model, self.flows, self.counters, self.rates, self.notifications, self.limits):
            step()
            if len(self.wrong) > 5:
                break  # the first ones show the cause

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
            if kind == "proxy-notification":
                self.proxy_notification(what, f)
                continue
            granted = [(p.prefixlen, a) for p, a in self.model.endpoints if f.dst in p]
            if not granted or kind not in max(granted)[1] or kind not in self.model.enabled:
                self.wrong.append("%s, %s, goes to %s, which was not granted it" % (what, kind, f.dst))
            self.scapy_judges(what, kind, f)
            self.names_the_true_qp(what, kind, f)

    def proxy_notification(self, what, f):
        """It goes to the sender's proxy, is short enough, has right checksums, and five-tuple and invoking packet agree."""
        src, dst, ports, packet = invoking(f)
        self.expect(what + "'s proxy", f.dst, self.model.proxy_of(src))
        self.expect(what + " is short enough", f.end - f.l3 <= (576 if f.family == 4 else 1280), True)
        self.expect(what + "'s five-tuple", (str(src), str(dst), ports), (packet.src, packet.dst, (packet[UDP].sport, packet[UDP].dport)))
        outer = Ether(f.octets)
        whole = outer[IP] if f.family == 4 else outer[IPv6]
        rebuilt = type(whole)(bytes(whole))
        del rebuilt[UDP].chksum
        self.expect(what + "'s UDP checksum", bytes(whole)[f.l4 - f.l3 + 6:f.l4 - f.l3 + 8].hex(), bytes(rebuilt)[f.l4 - f.l3 + 6:f.l4 - f.l3 + 8].hex())
        if f.family == 4:
            self.scapy_agrees(what, whole, None)

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
        at = f.l4 + 4 if kind == "long-haul-cnp-icmpv6" else f.bth_at + 12
        if kind == "fast-cnp":
            receiver = ipaddress.IPv6Address(self.receiver(f))
            qp, peer = f.qp, receiver
        else:
            qp, peer = struct.unpack_from("!I", f.octets, at + 4)[0], f.dst
            if kind == "long-haul-cnp":
                self.expect(what + "'s DestQP", f.qp, qp)
        self.expect(what + " is about a connection's QP", qp > 1, True)
        if self.facts["truth_is_whole"]:
            exists = any((str(peer), qp) == (source, number) for (source, _, _), number in self.truth.items())
            self.expect("%s: QP %d at %s exists" % (what, qp, peer), exists, True)
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
            if action(f) == model.RESUME:
                continue  # it ends what the notification before it asked for
            about = (f.dst, self.receiver(f), f.vlans,
                     f.qp if f.roce else struct.unpack_from("!I", f.octets, f.l4 + 8)[0])
            proxied = self.model.notification(f) == "proxy-notification"
            if proxied:
                src, dst, _, packet = invoking(f)
                about = (src, dst, f.vlans, packet[BTH].dqpn)
            if about in last and at - last[about] < interval - slack:
                self.wrong.append("two notifications of one flow are %d ns apart, want %d" % (at - last[about], interval))
            last[about] = at
            by_destination[f.dst, proxied].append(at)
        l = c["Notifications"]["Limits"]
        for (who, proxied), times in by_destination.items():
            self.limit(who, times, c["Proxy"]["PerProxy"] if proxied else l["PerDestination"], slack)
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
        want = [(str(k[0]), str(k[1]), source_qp, k[2], *(("unknown", None, 0) if source_qp is None else ("confirmed", r.evidence, r.took)), 0, r.ended,
                 r.transport, r.packets, r.bytes, r.marked, dict(r.notified))
                for k, r, source_qp in ((k, r, self.model.source_qp(k)) for k, r in self.model.flows.items())]
        names = ("source_ip", "destination_ip", "source_qp", "destination_qp", "qp_state", "qp_evidence", "qp_packets", "qp_contradictions",
                 "ended", "transport", "packets", "bytes", "ecn_marked", "notifications")
        flows = [{"ended": "", **f, **({} if f["qp_state"] == "confirmed" else {"qp_state": "unknown", "qp_evidence": None})}
                 for f in self.report["flows"]]  # candidates: see source_qps
        self.expect("flows", sorted([tuple(f[n] for n in names) for f in flows], key=repr), sorted(want, key=repr))

    def counters(self):
        want = {(name, label): n for (name, label), n in self.model.counters.items() if n}
        got = {}
        for name, v in self.report["counters"].items():
            for label, n in (v.items() if isinstance(v, dict) else [(None, v)]):
                if n and name != "flows":
                    got[name, label] = n
        got.pop(("qp_evidence_total", "psn"), None)  # for how often a gateway looks at these, nobody says: see source_qps
        got.pop(("qp_evidence_total", "port"), None)
        self.expect("counters", got, want)

    # --- which QP sends a flow

    def claims(self, gateway):
        """The pairs of flows that the report says were learned from ports or PSNs."""
        learned = {}
        for f in self.report["flows"]:
            if f["qp_state"] == "confirmed" and f["qp_evidence"] in ("port", "psn"):
                src, dst = (ipaddress.ip_address(f[n]) for n in ("source_ip", "destination_ip"))
                inside = any(src in p for p in gateway.prefixes)
                key = src, dst, f["destination_qp"], 0, gateway.fabric if inside else gateway.wan, tuple(f.get("vlan", ()))
                learned[key] = f
        claims = []
        for key, f in learned.items():
            src, dst, qp, _, port, vlans = key
            mate = dst, src, f["source_qp"], 0, gateway.wan if port == gateway.fabric else gateway.fabric, vlans
            back = learned.get(mate)
            if back is None or back["source_qp"] != qp or back["qp_evidence"] != f["qp_evidence"]:
                self.wrong.append("%s to %s QP %d is learned, and not so its reverse" % (src, dst, qp))
            elif port == gateway.fabric:
                claims.append(pairing.Claim(f["qp_evidence"], (key, mate), (f["qp_packets"], back["qp_packets"])))
        return claims

    def source_qps(self):
        """No flow has a wrong source QP; every flow of a connection with traffic both ways has one; and what is claimed for it holds."""
        ways = {(k[0], k[1], k[2]): k[4] for k in self.model.flows}
        for f in self.report["flows"]:
            src, dst, qp = f["source_ip"], f["destination_ip"], f["destination_qp"]
            what = "%s to %s QP %d, %s by %s" % (src, dst, qp, f["qp_state"], f["qp_evidence"])
            true = self.truth.get((src, dst, qp))
            if f["qp_state"] == "confirmed":
                self.seen["confirmed by " + f["qp_evidence"]] += 1
                if true is not None:
                    self.expect("source QP of " + what, f["source_qp"], true)
                    self.seen["true source QPs"] += 1
                elif f["qp_evidence"] in LEARNED:
                    self.wrong.append(what + ": nobody knows of such a connection")
                continue
            self.expect("source QP of " + what, f["source_qp"], None)
            self.candidate(what, f)
            a, b = ipaddress.ip_address(src), ipaddress.ip_address(dst)
            way, back = ways.get((a, b, qp)), ways.get((b, a, true))
            if true is not None and None not in (way, back) and way != back and not self.facts["may_miss"]:
                self.wrong.append(what + ": has traffic both ways")
        for c in self.model.claims:
            why = c.wrong if c.known else "never had so many packets"
            if why is not None:
                self.wrong.append("%s and %s, by %s after %s packets: %s" % (*c.flows, c.evidence, c.took, why))
        self.evidence()

    def candidate(self, what, f):
        """What makes a candidate must be there as well."""
        src, dst = (ipaddress.ip_address(f[n]) for n in ("source_ip", "destination_ip"))
        sights = self.model.sights.items()
        there = [s for k, s in sights if k[:3] == (src, dst, f["destination_qp"])]
        back = [s for k, s in sights if k[:2] == (dst, src)]
        self.expect("a candidate is one by some evidence: " + what, f["qp_state"] == "candidate", f["qp_evidence"] is not None)
        ground = {
            None: True, "cnp": (src, dst) in self.model.cnps,
            "port": any(s.ports & t.ports for s in there for t in back),
            "psn": any(s.answered_by(t) or t.answered_by(s) for s in there for t in back),
        }
        self.expect("what makes it a candidate: " + what, ground[f["qp_evidence"]], True)

    def evidence(self):
        """Ports are looked at only where two are equal, PSNs only where something is acknowledged, each at least once for a pair."""
        sights, got = self.model.sights.items(), self.report["counters"]["qp_evidence_total"]
        pairs = [(s, t) for k, s in sights for m, t in sights if k[0] == m[1] and k[1] == m[0] and k[4] != m[4]]
        ports, answers = any(s.ports & t.ports for s, t in pairs), sum(bool(s.answers) for s, _ in pairs)
        by_port = self.report["counters"]["qp_confirmed_total"]["port"]
        if not ports and got["port"] or 2 * got["port"] < by_port:
            self.wrong.append("evidence of ports is %d; %d flows confirmed" % (got["port"], by_port))
        if got["psn"] > 2 * answers:
            self.wrong.append("PSNs have ruled out %d, of %d that they could" % (got["psn"], answers))


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
