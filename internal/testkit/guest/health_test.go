//go:build live && !nodpdk && long

package guest

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/lossypath"
)

// updateHealth writes the captures and what is true of them to testdata/health.
var updateHealth = flag.Bool("update-health", false, "write testdata/health")

// sick is a run of perftest between two kernels over a path that does something to it.
type sick struct {
	name    string
	program string
	delay   [2]time.Duration // before and behind the capture, each way
	timeOut time.Duration    // of the QP
	rule    func(r *rand.Rand, from int, behind bool, p *packet.Parsed) lossypath.Fate
	verdict string // that must be there; "" for none at all
}

func dataLost(from int, behind bool, each int) func(*rand.Rand, int, bool, *packet.Parsed) lossypath.Fate {
	return func(r *rand.Rand, f int, b bool, _ *packet.Parsed) lossypath.Fate {
		return lossypath.Fate{Lost: f == from && b == behind && r.IntN(each) == 0}
	}
}

// The client is host 1: it sends WRITEs and SENDs, and the server, host 0, answers READs.
var sicknesses = []sick{
	{name: "loss_behind", program: "ib_write_bw -s 8192 -n 60 -m 1024 -t 4 -u 18", timeOut: 1073 * time.Millisecond, rule: dataLost(1, true, 40), verdict: health.LossDownstream},
	{name: "loss_before", program: "ib_write_bw -s 8192 -n 60 -m 1024 -t 4 -u 18", timeOut: 1073 * time.Millisecond, rule: dataLost(1, false, 40), verdict: health.LossUpstream},
	{name: "acks_lost", program: "ib_write_lat -s 64 -n 200 -m 1024 -u 18", timeOut: 1073 * time.Millisecond, rule: func(r *rand.Rand, _ int, b bool, p *packet.Parsed) lossypath.Fate {
		return lossypath.Fate{Lost: b && p.Opcode == packet.RCAcknowledge && r.IntN(20) == 0}
	}, verdict: health.AckLoss},
	{name: "read_loss", program: "ib_read_bw -s 8192 -n 60 -m 1024 -t 4 -u 18", timeOut: 1073 * time.Millisecond, rule: dataLost(0, true, 40)},
	{name: "reordered", program: "ib_send_bw -s 8192 -n 60 -m 1024 -t 4 -u 18", timeOut: 1073 * time.Millisecond, rule: func(r *rand.Rand, f int, b bool, _ *packet.Parsed) lossypath.Fate {
		if f == 1 && !b && r.IntN(50) == 0 {
			return lossypath.Fate{Delay: 3e6}
		}
		return lossypath.Fate{}
	}, verdict: health.Reordering},
	{name: "rnr", program: "ib_send_bw -s 1024 -n 200 -m 1024 -r 1 -t 16 -u 18", timeOut: 1073 * time.Millisecond},
	{name: "short_timeout", program: "ib_write_bw -s 4096 -n 60 -m 1024 -t 2 -u 11", delay: [2]time.Duration{0, 15 * time.Millisecond}, timeOut: 8 * time.Millisecond, verdict: health.ShortTimeOut},
	{name: "long_timeout", program: "ib_write_bw -s 4096 -n 60 -m 1024 -t 2 -u 16", delay: [2]time.Duration{0, 15 * time.Millisecond}, timeOut: 268 * time.Millisecond},
}

// TestHealthOfSoftRoCE: the causes of retransmissions between two kernels are those that the path between them knows of; and to follow the advice about a
// time-out that is shorter than the round trip ends it.
func TestHealthOfSoftRoCE(t *testing.T) {
	hosts := [2]*Guest{perftestGuest(t, "198.18.0.1"), perftestGuest(t, "198.18.0.2")}
	for i, s := range sicknesses {
		t.Run(s.name, func(t *testing.T) {
			truth, file := s.run(t, hosts, 18600+i)
			s.check(t, truth, file)
		})
	}
}

// perftestGuest is a host with Soft-RoCE on a NIC whose wire the test holds.
func perftestGuest(t *testing.T, address string) *Guest {
	t.Helper()
	provider, _ := filepath.Glob("/usr/lib/*/libibverbs/librxe-rdmav*.so")
	if len(provider) != 1 {
		t.Fatalf("the provider of Soft-RoCE is at %q; run scripts/setup --test", provider)
	}
	files, err := Programs("/usr/bin/rdma", "/usr/bin/ib_write_bw", "/usr/bin/ib_write_lat", "/usr/bin/ib_read_bw", "/usr/bin/ib_send_bw", provider[0])
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "cnpgate-guest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g, err := Boot(Config{
		Folder: dir, CPUs: 1, MemoryMiB: 512, NICs: []string{"virtio-net-pci"},
		Files:   append(files, File{Path: "/etc/libibverbs.d/rxe.driver", Text: "driver rxe\n", Mode: 0o644}),
		Modules: []string{"virtio_pci", "virtio_net", "crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	// Both NICs have the same address by default.
	mac := "02:00:00:00:01:0" + address[len(address)-1:]
	for _, command := range []string{
		"ip link set lo up", "echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6", "ip link set eth0 address " + mac, "ip link set eth0 mtu 4200 up",
		"ip address add " + address + "/24 dev eth0", "rdma link add rxe0 type rxe netdev eth0",
	} {
		if _, err := g.Run(command); err != nil {
			t.Fatalf("%v\n%s", err, g.Console())
		}
	}
	return g
}

// wire connects two guests by a path, in real time.
type wire struct {
	mutex sync.Mutex
	path  lossypath.Path
	start time.Time
	ends  [2]*NIC
	stop  chan struct{}
	all   sync.WaitGroup
}

func (w *wire) now() int64 { return int64(time.Since(w.start)) + 1 }

func (w *wire) run() {
	for from := range w.ends {
		w.all.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				default:
				}
				frame, err := w.ends[from].Receive(20 * time.Millisecond)
				if err != nil || frame == nil {
					continue
				}
				w.mutex.Lock()
				w.path.Enter(from, w.now(), frame)
				w.path.Run(w.now())
				w.mutex.Unlock()
			}
		})
	}
	w.all.Go(func() {
		tick := time.NewTicker(100 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.mutex.Lock()
				w.path.Run(w.now())
				w.mutex.Unlock()
			}
		}
	})
}

// run runs the program, and returns what is true and the capture.
func (s *sick) run(t *testing.T, hosts [2]*Guest, port int) (*lossypath.Truth, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), s.name+".pcap")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	capture := pcapgo.NewWriterNanos(out)
	if err := capture.WriteFileHeader(128, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, uint64(port)))
	w := &wire{start: time.Now(), ends: [2]*NIC{hosts[0].NICs[0], hosts[1].NICs[0]}, stop: make(chan struct{})}
	w.path.Truth.TimeOut = int64(s.timeOut)
	w.path.Rule = func(from int, behind bool, _ int, p *packet.Parsed) (f lossypath.Fate) {
		side := 0
		if behind == (from == 1) { // host 1, the client, is before the capture
			side = 1
		}
		if p.Kind == packet.RoCEv2 && s.rule != nil {
			f = s.rule(random, from, behind, p)
		}
		f.Delay += int64(s.delay[side])
		return f
	}
	w.path.Capture = func(now int64, frame []byte) {
		var p packet.Parsed
		if packet.Parse(frame, uint32(len(frame)), &p); p.Kind != packet.RoCEv2 {
			return
		}
		cut := frame[:min(len(frame), 96)]
		_ = capture.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1_700_000_000, now), CaptureLength: len(cut), Length: len(frame)}, cut)
	}
	w.path.Deliver = func(to int, _ int64, frame []byte) { _ = w.ends[to].Send(frame) }
	w.run()
	command := fmt.Sprintf("%s -d rxe0 -x 1 -F -p %d", s.program, port)
	if _, err := hosts[0].Run(fmt.Sprintf("(timeout 100 %s >/tmp/server 2>&1 &) ; sleep 3", command)); err != nil {
		t.Fatal(err)
	}
	text, err := hosts[1].Run("timeout 90 " + command + " 198.18.0.1 2>&1")
	close(w.stop)
	w.all.Wait()
	if err != nil {
		server, _ := hosts[0].Run("cat /tmp/server")
		t.Errorf("%v\n%s\nthe server: %s", err, text, server)
	}
	return &w.path.Truth, file
}

// check compares causes and verdicts.
func (s *sick) check(t *testing.T, truth *lossypath.Truth, file string) {
	t.Helper()
	c, err := replay.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := replay.Health(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, right, all := truth.Causes(), uint64(0), uint64(0)
	for cause, n := range want {
		right += min(n, r.Summary.Causes[cause].Packets)
		all += n
	}
	found := s.verdict == ""
	for _, v := range r.Verdicts {
		found = found || v.Name == s.verdict
		t.Logf("%s: %s; %s", v.Name, v.Evidence, v.Advice)
	}
	t.Logf("causes %v, want %v", r.Summary.Causes, want)
	if right*100 < all*98 || r.Summary.Causes[lossypath.Spurious].Packets > want[lossypath.Spurious] || !found {
		t.Errorf("%d of %d causes are right, spurious %d of %d, verdicts %+v", right, all, r.Summary.Causes[lossypath.Spurious].Packets, want[lossypath.Spurious], r.Verdicts)
	}
	if *updateHealth {
		s.update(t, want, file)
	}
}

func (s *sick) update(t *testing.T, want map[string]uint64, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(map[string]any{"command": s.program, "causes": want, "verdict": s.verdict}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join("../../../testdata/health", s.name)
	for name, content := range map[string][]byte{to + ".pcap": b, to + ".json": append(text, '\n')} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
