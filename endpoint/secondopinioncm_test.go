//go:build secondopinion

package endpoint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestWiresharkCM: tshark reads from the messages of RDMA-CM what the hosts agree on: the QPs, PSNs, addresses and the port of the connection's packets.
func TestWiresharkCM(t *testing.T) {
	var all [][]byte // one run of each program reads them
	var want []string
	for _, c := range []Config{{Payload: PayloadReal}, {Addr: ipv6, Payload: PayloadReal, MTU: 512}} {
		d := newDialling(t, c)
		d.stream = Stream{Op: Read, Bytes: 10_000, Messages: 5}
		var frames [][]byte
		d.seen = func(_ int64, _ int, frame []byte, _ int) { frames = append(frames, slices.Clone(frame)) }
		d.dial(1)
		d.run(never)
		var qps [2]QP
		for i, h := range d.hosts {
			qps[i] = h.byNumber[d.changes[i][0].QP].QP
		}
		d.hosts[0].Disconnect(d.now, qps[0].Number)
		number, err := d.hosts[0].Dial(d.now, qps[0].Peer, cmPort+1, 2) // nobody listens
		if err != nil {
			t.Fatal(err)
		}
		secondPSN := d.hosts[0].conns[number].Local.PSN
		d.run(never)
		a, b := d.hosts[0].c.Addr.Netip(), d.hosts[1].c.Addr.Netip()
		const gsi, noREQ = "100,0x000001,0x00000001,0x0000000080010000,", ",,,,,,,,,,,,,,"
		request := fmt.Sprintf(",0x0f,0x0f,%v,%v,%v,%v,,,,", a, b, a, b)
		if a.Is6() {
			request = fmt.Sprintf(",0x0f,0x0f,,,,,%v,%v,%v,%v", a, b, a, b)
		}
		code := map[int]string{512: "0x02", 1024: "0x03"}[d.hosts[0].c.MTU]
		mads := []string{
			gsi + fmt.Sprintf("0x0010,,,,,0x%06x,0x%06x,%s,0x%04x", qps[0].Number, qps[0].ReceivePSN, code, cmPort) + request,
			gsi + fmt.Sprintf("0x0013,0x%06x,0x%06x,,", qps[1].Number, qps[1].ReceivePSN) + noREQ,
			gsi + "0x0014,,,," + noREQ,
			gsi + fmt.Sprintf("0x0015,,,0x%06x,", qps[1].Number) + noREQ,
			gsi + fmt.Sprintf("0x0010,,,,,0x%06x,0x%06x,%s,0x%04x", qps[0].Number+1, secondPSN, code, cmPort+1) + request,
			gsi + "0x0016,,,," + noREQ,
			gsi + "0x0012,,,,0x0008" + noREQ,
		}
		for _, f := range frames {
			line := fmt.Sprintf("%d,", qps[0].SrcPort) // of data, only the port
			if parsed(f, len(f)).DestQP == packet.GSIQP && len(mads) > 0 {
				line, mads = mads[0], mads[1:]
			}
			want = append(want, line)
		}
		if len(mads) > 0 {
			t.Errorf("%d messages were not sent", len(mads))
		}
		all = append(all, frames...)
	}
	checkScapy(t, all)
	for i, got := range tshark(t, all, "udp.srcport", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.deth.srcqp", "infiniband.deth.q_key", "infiniband.mad.attributeid",
		"infiniband.cm.rep.localqpn", "infiniband.cm.rep.startpsn", "infiniband.cm.req.remoteqpneecn", "infiniband.cm.rej.reason", // DREQ's has req in its name
		"infiniband.cm.req.localqpn", "infiniband.cm.req.startpsn", "infiniband.cm.req.pppmtu", "infiniband.cm.req.serviceid.dport",
		"infiniband.cm.req.maxcmretr", "infiniband.cm.req.remoteresptout", "infiniband.cm.req.prim_localgid_ipv4", "infiniband.cm.req.prim_remotegid_ipv4",
		"infiniband.cm.req.ip_cm.sip4", "infiniband.cm.req.ip_cm.dip4", "infiniband.cm.req.prim_localgid", "infiniband.cm.req.prim_remotegid",
		"infiniband.cm.req.ip_cm.sip6", "infiniband.cm.req.ip_cm.dip6") {
		port, message, _ := strings.Cut(got, ",")
		if parsed(all[i], len(all[i])).DestQP != packet.GSIQP {
			got = port + ","
		} else {
			got = message
		}
		if got != want[i] && got != want[i]+"," {
			t.Errorf("frame %d: tshark reads %q, want %q", i+1, got, want[i])
		}
	}
}
