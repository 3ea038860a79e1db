//go:build live && !nodpdk

package guest

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// pingPong is what the kernel and an endpoint play: each sends a message when the other's has come.
const (
	rounds      = 50*effort.Short + 50*effort.Race + 200*effort.Long // the PSNs wrap after 16 packets, and one of 41 frames is lost
	endpointMAC = "02:00:00:00:00:01"
)

// TestEndpointWithSoftRoCE has an endpoint exchange messages with the kernel's Soft-RoCE, which checks ICRCs and PSNs, acknowledges and
// retransmits as the endpoint has to: ibv_rc_pingpong ends only if every message has come and was acknowledged. Then `cnpgate endpoint` and rping play both roles of rping's exchange.
func TestEndpointWithSoftRoCE(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	binary := buildGateway(t)
	makeTaps(t, rpingTap)
	g := endpointGuest(t)
	for i, c := range []struct {
		name     string
		lossEach int // one of so many frames is lost, in each direction; 0: none
	}{
		{"without loss", 0},
		{"with loss", 41},
	} {
		t.Run(c.name, func(t *testing.T) {
			peer := &kernelPeer{t: t, g: g, port: 18515 + i, lossEach: c.lossEach}
			peer.connect(uint32(0x11 + i))
			peer.play()
			counters := peer.h.Counters()
			if counters.MessagesDone != rounds || counters.WrongICRC+counters.WrongPeer+counters.UnknownQP+counters.Unsupported != 0 {
				t.Errorf("counted %+v", counters)
			}
			if again := counters.Retransmitted > 0; again != (c.lossEach > 0) {
				t.Errorf("%d packets sent again", counters.Retransmitted)
			}
		})
	}
	playRping(t, g, binary)
	if out, _ := g.Run("dmesg | grep -i icrc"); out != "" {
		t.Errorf("the guest says: %s", out)
	}
}

// endpointGuest is a host with Soft-RoCE on a NIC whose wire the test holds, and on one behind a tap interface.
func endpointGuest(t *testing.T) *Guest {
	t.Helper()
	const tap, wire = "eth0", "eth1" // in the order of their PCI addresses
	return softRoCE(t, Config{CPUs: 1, NICs: []string{"virtio-net-pci"}, Taps: []string{rpingTap}},
		[]string{"/usr/bin/rdma", "/usr/bin/ibv_rc_pingpong", "/usr/bin/rping"},
		"ip link set lo up", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
		"ip link set "+wire+" mtu 1500 up", "ip address add 198.18.0.2/24 dev "+wire,
		"arp -i "+wire+" -s 198.18.0.1 "+endpointMAC, "rdma link add rxe0 type rxe netdev "+wire,
		"ip link set "+tap+" mtu 4200 up", "ip address add 198.19.0.2/24 dev "+tap,
		"arp -i "+tap+" -s 198.19.0.1 "+endpointMAC, "rdma link add rxe1 type rxe netdev "+tap)
}

// kernelPeer is an endpoint and the kernel that it talks with.
type kernelPeer struct {
	t        *testing.T
	g        *Guest
	h        *endpoint.Host
	qp       uint32
	port     int
	lossEach int
	frames   int
	replies  int
	expect   uint32 // PSN of the kernel's next request
}

// messageBytes is the size of a message.
const messageBytes = 4096

// connect starts the server of ibv_rc_pingpong, gives it the endpoint's QP over TCP inside the guest, and opens the QP towards the server's.
func (k *kernelPeer) connect(qp uint32) {
	k.t.Helper()
	const psn = 0xfffff0 // wraps
	const gid = "00000000000000000000ffffc6120001"
	server := fmt.Sprintf("(timeout 200 ibv_rc_pingpong -m 1024 -d rxe0 -g 1 -s %d -n %d -p %d >/tmp/server%d 2>&1; echo $? >/tmp/status%d) & until grep -q :%04X.*' 0A ' /proc/net/tcp*; do sleep 0.1; done",
		messageBytes, rounds, k.port, k.port, k.port, k.port)
	answered := fmt.Sprintf("[ -s /tmp/client%d ]", k.port)
	client := fmt.Sprintf("((printf '0000:%06x:%06x:%s\\000'; until %s; do sleep 0.1; done; printf 'done\\000'; sleep 1) | nc 127.0.0.1 %d >/tmp/client%d) &",
		qp, psn, gid, answered, k.port, k.port)
	for _, command := range []string{server, client} {
		if _, err := k.g.Run(command); err != nil {
			k.t.Fatal(err)
		}
	}
	if err := k.g.Until(answered); err != nil {
		k.t.Fatal(err)
	}
	answer, _ := k.g.Run(fmt.Sprintf("tr -d '\\000' </tmp/client%d", k.port))
	var lid, peerQP, peerPSN uint32
	if _, err := fmt.Sscanf(answer, "%x:%x:%x:", &lid, &peerQP, &peerPSN); err != nil {
		log, _ := k.g.Run(fmt.Sprintf("cat /tmp/server%d", k.port))
		k.t.Fatalf("the server answers %q: %v\n%s", answer, err, log)
	}
	k.qp, k.expect = qp, peerPSN
	address := func(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }
	h, err := endpoint.New(endpoint.Config{
		Addr: address("198.18.0.1"), MAC: [6]byte{2, 0, 0, 0, 0, 1}, LineRate: 1_000_000_000, MTU: 1024, Payload: endpoint.PayloadReal,
		Timeout: 300_000_000, Retries: 100,
	})
	if err == nil {
		err = h.Open(endpoint.QP{
			Number: qp, SendPSN: psn, ReceivePSN: peerPSN,
			Peer: endpoint.Peer{Addr: address("198.18.0.2"), MAC: [6]byte{2, 0, 0, 0, 0, slot}, QP: peerQP},
		})
	}
	if err != nil {
		k.t.Fatal(err)
	}
	k.h = h
}

// play runs until the server has ended with success.
func (k *kernelPeer) play() {
	k.t.Helper()
	start := time.Now()
	k.send()
	quiet := 0
	for k.replies < rounds || quiet < 100 {
		now := int64(time.Since(start))
		if now > int64(patience) {
			log, _ := k.g.Run(fmt.Sprintf("cat /tmp/server%d", k.port))
			k.t.Fatalf("%d of %d messages have come, counted %+v\n%s", k.replies, rounds, k.h.Counters(), log)
		}
		k.transmit(now)
		frame, err := k.g.NICs[0].Receive(5 * time.Millisecond)
		if err != nil {
			k.t.Fatal(err)
		}
		if quiet++; frame != nil && !k.lost() {
			quiet = 0
			k.receive(int64(time.Since(start)), frame)
		}
	}
	if err := k.g.Until(fmt.Sprintf("[ -e /tmp/status%d ]", k.port)); err != nil {
		k.t.Fatal(err)
	}
	status, _ := k.g.Run(fmt.Sprintf("cat /tmp/status%d /tmp/server%d", k.port, k.port))
	if status == "" || status[0] != '0' {
		k.t.Errorf("the server ends with %s", status)
	}
}

func (k *kernelPeer) send() {
	if err := k.h.Start(endpoint.Stream{QP: k.qp, Op: endpoint.Send, Bytes: messageBytes}); err != nil {
		k.t.Fatal(err)
	}
}

// transmit sends what the endpoint may send now.
func (k *kernelPeer) transmit(now int64) {
	var out [endpoint.MaxFrame]byte
	for {
		n, length := k.h.Next(now, out[:])
		if length == 0 {
			return
		}
		if k.lost() {
			continue
		}
		if err := k.g.NICs[0].Send(out[:n]); err != nil {
			k.t.Fatal(err)
		}
	}
}

// receive hands the endpoint a frame. Each whole message of the kernel is answered by another one.
func (k *kernelPeer) receive(now int64, frame []byte) {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	k.h.Receive(now, frame, len(frame))
	if p.Kind != packet.RoCEv2 || p.Opcode.Role() == packet.Response || p.PSN != k.expect {
		return
	}
	k.expect = (k.expect + 1) & 0xffffff
	if p.Opcode == packet.RCSendLast {
		if k.replies++; k.replies < rounds {
			k.send()
		}
	}
}

// lost reports whether the next frame gets lost.
func (k *kernelPeer) lost() bool {
	k.frames++
	return k.lossEach > 0 && k.frames%k.lossEach == 0
}
