//go:build live && !nodpdk && long

package guest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/lossypath"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// updateHealth writes what passed between the guests to testdata/health.
var updateHealth = flag.Bool("update-health", false, "write testdata/health")

// sick is a run of perftest between two kernels over a path that does something to it.
type sick struct {
	name    string
	program string
	timeOut int              // of the QP: 4.096 us * 2^timeOut
	delay   [2]time.Duration // before and behind the capture, each way
	netem   string           // what the qdisc netem of either guest does to what it sends
	rule    func(r *rand.Rand, from int, behind bool, p *packet.Parsed) lossypath.Fate
}

// lost loses one packet in each of those that a host sends, of one role or of all, on one half of the path or on both (behind is nil).
func lost(from int, behind []bool, each int, roles ...packet.Role) func(*rand.Rand, int, bool, *packet.Parsed) lossypath.Fate {
	return func(r *rand.Rand, f int, b bool, p *packet.Parsed) lossypath.Fate {
		here := (from == f || from == anyone) && slices.Contains(behind, b) && (len(roles) == 0 || slices.Contains(roles, p.Opcode.Role()))
		return lossypath.Fate{Lost: here && r.IntN(each) == 0}
	}
}

// late delays one packet in each of those that a host sends.
func late(from int, behind bool, each int, by time.Duration) func(*rand.Rand, int, bool, *packet.Parsed) lossypath.Fate {
	return func(r *rand.Rand, f int, b bool, _ *packet.Parsed) lossypath.Fate {
		if f == from && b == behind && r.IntN(each) == 0 {
			return lossypath.Fate{Delay: int64(by)}
		}
		return lossypath.Fate{}
	}
}

var (
	before, behind, both = []bool{false}, []bool{true}, []bool{false, true}
	anyone               = -1
)

// The client is host 1: it sends WRITEs and SENDs, and the server, host 0, answers READs.
var sicknesses = []sick{
	{name: "healthy_write", program: "ib_write_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 18},
	{name: "healthy_read", program: "ib_read_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 18, delay: [2]time.Duration{5 * time.Millisecond, 5 * time.Millisecond}},
	{name: "healthy_send", program: "ib_send_lat -s 64 -n 100 -m 1024", timeOut: 18},
	{name: "loss_behind", program: "ib_write_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 18, rule: lost(1, behind, 40)},
	{name: "loss_before", program: "ib_write_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 18, rule: lost(1, before, 40)},
	{name: "loss_everywhere", program: "ib_write_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 17, rule: lost(anyone, both, 80)},
	{name: "loss_bidirectional", program: "ib_send_bw -b -s 4096 -n 60 -m 1024 -t 4 -r 64", timeOut: 17, rule: lost(anyone, both, 80)},
	{name: "acks_lost", program: "ib_write_lat -s 64 -n 200 -m 1024", timeOut: 18, rule: lost(anyone, behind, 20, packet.Response)},
	{name: "acks_lost_before", program: "ib_send_lat -s 64 -n 100 -m 1024", timeOut: 17, rule: lost(anyone, before, 20, packet.Response)},
	{name: "read_loss", program: "ib_read_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 18, rule: lost(0, behind, 40)},
	{name: "read_loss_before", program: "ib_read_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 17, rule: lost(0, before, 40)},
	{name: "read_loss_everywhere", program: "ib_read_lat -s 8192 -n 60 -m 1024", timeOut: 17, rule: lost(anyone, both, 60)},
	{name: "read_loss_alone", program: "ib_read_lat -s 4096 -n 100 -m 1024", timeOut: 16, delay: [2]time.Duration{2 * time.Millisecond, 2 * time.Millisecond}, rule: lost(anyone, behind, 30)},
	{name: "reordered", program: "ib_send_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 18, rule: late(1, false, 50, 3*time.Millisecond)},
	{name: "reordered_behind", program: "ib_write_bw -s 8192 -n 60 -m 1024 -t 4", timeOut: 18, rule: late(1, true, 50, 10*time.Millisecond)},
	{name: "reordered_repeats", program: "ib_send_bw -s 4096 -n 80 -m 1024 -t 6", timeOut: 17, rule: late(1, true, 40, 5*time.Millisecond)},
	{name: "read_reordered", program: "ib_read_bw -s 4096 -n 80 -m 1024 -t 3", timeOut: 17, delay: [2]time.Duration{time.Millisecond, time.Millisecond}, rule: late(0, true, 40, 3*time.Millisecond)},
	{name: "rnr", program: "ib_send_bw -s 1024 -n 200 -m 1024 -r 1 -t 16", timeOut: 18},
	{name: "rnr_loss", program: "ib_send_bw -s 2048 -n 100 -m 1024 -r 1 -t 8", timeOut: 17, rule: lost(anyone, both, 80)},
	{name: "short_timeout", program: "ib_write_bw -s 4096 -n 60 -m 1024 -t 2", timeOut: 11, delay: [2]time.Duration{0, 15 * time.Millisecond}},
	{name: "read_short_timeout", program: "ib_read_bw -s 8192 -n 40 -m 1024 -t 4", timeOut: 12, delay: [2]time.Duration{8 * time.Millisecond, 8 * time.Millisecond}},
	{name: "short_timeout_acks_lost", program: "ib_write_bw -s 2048 -n 100 -m 1024 -t 4", timeOut: 12, delay: [2]time.Duration{9 * time.Millisecond, 3 * time.Millisecond}, rule: lost(0, both, 25)},
	{name: "netem_short_timeout", program: "ib_write_bw -s 4096 -n 60 -m 1024 -t 2", timeOut: 11, netem: "delay 15ms"},
	{name: "long_timeout", program: "ib_write_bw -s 4096 -n 60 -m 1024 -t 2", timeOut: 16, delay: [2]time.Duration{0, 15 * time.Millisecond}},
}

// TestHealthOfSoftRoCE: the causes of retransmissions between two kernels are those that the path between them knows of; and to follow the advice about a
// time-out that is shorter than the round trip ends it, on a path that delays and behind the kernel's own netem.
func TestHealthOfSoftRoCE(t *testing.T) {
	if !*updateHealth && ontime.Again(t) {
		return
	}
	hosts := [2]*Guest{perftestGuest(t, "198.18.0.1"), perftestGuest(t, "198.18.0.2")}
	for i, s := range sicknesses {
		t.Run(s.name, func(t *testing.T) {
			trace := s.run(t, hosts, 18600+i)
			r := judge(t, trace)
			if *updateHealth && s.netem == "" {
				s.update(t, trace)
			}
			if !strings.HasSuffix(s.name, "short_timeout") {
				return
			}
			at := slices.IndexFunc(r.Verdicts, func(v health.Verdict) bool { return v.Name == health.ShortTimeOut })
			if at < 0 {
				t.Fatalf("verdicts %+v", r.Verdicts)
			}
			advice := r.Verdicts[at].Advice
			if _, err := fmt.Sscanf(advice, "raise the QP's timeout to %d", &s.timeOut); err != nil {
				t.Fatal(advice, err)
			}
			t.Log(r.Verdicts[at].Evidence, advice)
			for _, v := range judge(t, s.run(t, hosts, 18700+i)).Verdicts {
				if v.Name == health.ShortTimeOut {
					t.Errorf("with the timeout of the advice: %+v", v)
				}
			}
		})
	}
}

// judge compares the causes in the middle of the path with the truth, and returns the report.
func judge(t *testing.T, trace *lossypath.Trace) *health.Report {
	t.Helper()
	file, write, end := pcap.Create(t, 96)
	truth := trace.Replay(lossypath.Middle, func(now int64, frame []byte) { write(now, frame, len(frame)) })
	end()
	c, err := replay.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d, err := replay.Diagnose(c, replay.HealthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := d.Report
	want, right, all := truth.Causes(), uint64(0), uint64(0)
	for cause, n := range want {
		right += min(n, r.Summary.Causes[cause].Packets)
		all += n
	}
	t.Logf("causes %v, want %v", r.Summary.Causes, want)
	few := right+1 == all // of a few packets, one is more than 2 %
	if right*100 < all*98 && !few || r.Summary.Causes[lossypath.Spurious].Packets > want[lossypath.Spurious] {
		t.Errorf("%d of %d causes are right", right, all)
	}
	return r
}

// perftestGuest is a host with Soft-RoCE on a NIC whose wire the test holds.
func perftestGuest(t *testing.T, address string) *Guest {
	t.Helper()
	// Both NICs have the same address by default.
	mac := "02:00:00:00:01:0" + address[len(address)-1:]
	return softRoCE(t, Config{CPUs: 1, NICs: []string{"virtio-net-pci"}, Modules: []string{"sch_netem"}},
		[]string{"/usr/bin/rdma", "/sbin/tc", "/usr/bin/ib_write_bw", "/usr/bin/ib_write_lat", "/usr/bin/ib_read_bw", "/usr/bin/ib_send_bw",
			"/usr/bin/ib_send_lat", "/usr/bin/ib_read_lat"},
		"ip link set lo up", "echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6", "ip link set eth0 address "+mac, "ip link set eth0 mtu 4200 up",
		"ip address add "+address+"/24 dev eth0", "rdma link add rxe0 type rxe netdev eth0")
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

// run runs the program, and returns what passed.
func (s *sick) run(t *testing.T, hosts [2]*Guest, port int) *lossypath.Trace {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(port)))
	w := &wire{start: time.Now(), ends: [2]*NIC{hosts[0].NICs[0], hosts[1].NICs[0]}, stop: make(chan struct{})}
	trace := &lossypath.Trace{TimeOut: 4096 << s.timeOut}
	w.path.Trace, w.path.Truth.TimeOut = trace, trace.TimeOut
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
	if s.netem != "" {
		for _, h := range hosts {
			if _, err := h.Run("/sbin/tc qdisc add dev eth0 root netem " + s.netem); err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			for _, h := range hosts {
				if _, err := h.Run("/sbin/tc qdisc del dev eth0 root"); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	w.path.Deliver = func(to int, _ int64, frame []byte) { _ = w.ends[to].Send(frame) }
	w.run()
	command := fmt.Sprintf("%s -u %d -d rxe0 -x 1 -F -p %d", s.program, s.timeOut, port)
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
	return trace
}

// update keeps a run, for TestHealthOfTraces (control/replay).
func (s *sick) update(t *testing.T, trace *lossypath.Trace) {
	t.Helper()
	f, err := os.Create(filepath.Join("../../../testdata/health", s.name+".trace"))
	if err == nil {
		err = errors.Join(trace.Write(f), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
