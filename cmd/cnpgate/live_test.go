//go:build live && !nodpdk

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const (
	stopTime     = (5*effort.Short + 5*effort.Race + 10*effort.Long) * time.Second
	everyVariant = effort.Long == 1
	takeovers    = 3*effort.Short + 3*effort.Race + 20*effort.Long
	reloads      = 300*effort.Short + 300*effort.Race + 1000*effort.Long
)

// TestLiveDisturbed: whatever happens to the interfaces and the process, exactly the frames counted as forwarded arrive, and forwarding
// continues.
func TestLiveDisturbed(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	for _, c := range []struct {
		name    string
		fault   string // its row in the table of faults, "" for none
		lasts   time.Duration
		disturb func(t *testing.T, p *process, b *host) (again *host) // another host, where b's end was replaced
	}{
		{"nothing", "", 0, func(*testing.T, *process, *host) *host { return nil }},
		{"100 flaps of the far end", "", 0, func(t *testing.T, _ *process, _ *host) *host {
			ip(t, slices.Repeat([]string{"link set b1 down", "link set b1 up"}, 100)...)
			return nil
		}},
		{"20 flaps of the near end", "An interface that is made again; a link, 20 times", 20 * time.Millisecond, func(t *testing.T, _ *process, _ *host) *host {
			for range 20 {
				ip(t, "link set b0 down")
				time.Sleep(20 * time.Millisecond)
				ip(t, "link set b0 up")
			}
			return nil
		}},
		{"no link for a while", "", 0, func(t *testing.T, p *process, _ *host) *host {
			ip(t, "link set b1 down")
			p.says(`"message":"The link is down."`, 1)
			if err := p.turns(503, `"wan":"no link since 20`); err != nil {
				t.Error(err)
			}
			ip(t, "link set b0 down")
			if err := p.turns(503, "interface b0 is down: switch it on with `ip link set b0 up`; no link since 20"); err != nil {
				t.Error(err)
			}
			ip(t, "link set b0 up", "link set b1 up")
			if err := p.turns(200, `"healthy":true`); err != nil {
				t.Error(err)
			}
			return nil
		}},
		{"MTU", "", 0, func(t *testing.T, p *process, _ *host) *host {
			ip(t, "link set b0 mtu 600")
			p.says("Interface b0 has MTU 600 now", 1)
			if status, body := p.health(); status != 503 || !strings.Contains(body, "MTU 600") {
				t.Errorf("health: %s", body)
			}
			ip(t, "link set b0 mtu 1500")
			p.says("Interface b0 has MTU 1500 now", 1)
			return nil
		}},
		{"deleted and made again", "", 0, func(t *testing.T, p *process, _ *host) *host {
			ip(t, "link del b0")
			p.says("Interface b0 is gone", 1)
			if status, body := p.health(); status != 503 || !strings.Contains(body, "interface b0 is gone") {
				t.Errorf("health: %s", body)
			}
			addWire(t, "b")
			again := newHost(t, "b1") // before the first frame can come
			switchOn(t, "b")
			p.says("Interface b0 is back", 1)
			p.says("Interface b0 is switched on", 1)
			flows(t, "made again", again, recoveryTime)
			if err := p.turns(200, `"healthy":true`); err != nil {
				t.Error(err)
			}
			return again
		}},
		{"stopped for a while", "SIGSTOP", stopTime, func(_ *testing.T, p *process, _ *host) *host {
			p.signal(syscall.SIGSTOP)
			time.Sleep(stopTime)
			p.signal(syscall.SIGCONT)
			return nil
		}},
		{"SIGHUP", "", 0, func(_ *testing.T, p *process, _ *host) *host {
			p.signal(syscall.SIGHUP)
			p.says("The configuration was reloaded", 1)
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A subtest has a goroutine, and so a thread, of its own: it enters a namespace of its own.
			enterNamespace(t)
			p := startGateway(t, program)
			a, b := newHost(t, "a1"), newHost(t, "b1")
			end := a.load(1000)
			flows(t, "at first", b, startTime)
			again := c.disturb(t, p, b)
			if again == nil {
				flows(t, "afterwards", b, recoveryTime)
			}
			end()
			b.settle()
			if again != nil {
				again.settle()
			}
			fabric, wan := p.stop()
			b.close()
			arrived := b.received.Load()
			if again != nil {
				again.close()
				arrived += again.received.Load()
			}
			if wan.Counters.Forwarded != arrived {
				t.Errorf("%d frames count as forwarded, %d arrived", wan.Counters.Forwarded, arrived)
			}
			missed := fabric.Device["device_missed_packets_total"] + fabric.Device["device_no_buffer_packets_total"]
			if sent := a.sent.Load(); fabric.Counters.Received+missed != sent {
				t.Errorf("%d frames sent, %d received, %d missed by the device", sent, fabric.Counters.Received, missed)
			}
			if c.fault != "" {
				faulted(t, c.fault, a, b, c.lasts)
			}
			t.Logf("sent %d, received %d, missed %d, forwarded %d, arrived %d, dropped %v", a.sent.Load(), fabric.Counters.Received, missed,
				wan.Counters.Forwarded, arrived, wan.Counters.Dropped)
		})
	}
}

// TestLiveKilled: a gateway that is killed leaves nothing that keeps the next one from starting; while one runs, a second is refused.
func TestLiveKilled(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	defer end()
	for range 2 {
		p := startGateway(t, program)
		flows(t, "started", b, startTime)
		out, err := exec.Command(program, "run", "--config", filepath.Join(p.dir, "c.yaml")).CombinedOutput()
		if want := fmt.Sprintf("interface a0 is in use by the gateway with process ID %d", p.cmd.Process.Pid); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("a second gateway: %v, %s; expected %q", err, out, want)
		}
		p.signal(syscall.SIGKILL)
		<-p.ended
	}
}

// TestLiveLog: every line of the log is JSON, also what DPDK logs, with the level that it gave. SIGQUIT, too, stops the gateway in order, with its report.
func TestLiveLog(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	p := startWith(t, program, strings.Replace(liveConfig, "idle: backoff", `idle: backoff, eal_args: ["--log-level=lib.eal:debug"]`, 1))
	p.signal(syscall.SIGQUIT)
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.report); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	levels := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Level, Message string
			DPDK           string `json:"dpdk_level"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Message == "" {
			t.Errorf("%v: %s", err, line)
		}
		if strings.HasPrefix(l.Message, "EAL: ") {
			levels[l.Level+" "+l.DPDK]++
		}
	}
	if levels["debug debug"] == 0 || levels["info info"] == 0 || levels[" "] != 0 {
		t.Errorf("the levels are %v", levels)
	}
}

// TestLiveCheck: check says what this host lacks, with the place in the file, opens nothing without --devices, and needs no rights; run names the same places.
func TestLiveCheck(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	dir := t.TempDir()
	text := strings.Replace(fmt.Sprintf(liveConfig, dir), "192.0.2.1", "198.18.255.1", 1) // not reserved for examples: no warning
	check := func(text string, arguments ...string) ran {
		put(t, dir, "c.yaml", []byte(text))
		c := exec.Command(program, append([]string{arguments[0], "--config", filepath.Join(dir, "c.yaml")}, arguments[1:]...)...)
		return finished(t, c)
	}
	if got := check(text, "check"); got.status != 0 || !strings.Contains(got.stdout, "c.yaml is valid") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ old, new, want string }{
		{"iface=b0", "iface=nope0", "ports[1].device: port wan (device \"net_af_packet1,iface=nope0\"): interface nope0: there is none"},
		{",iface=b0", "", "ports[1].device: port wan (device \"net_af_packet1\"): "},
		{"workers: [0]", "workers: [99]", "dpdk.workers[0]: core 99 is not there"},
	} {
		wrong := strings.Replace(text, c.old, c.new, 1)
		if wrong == text {
			t.Fatalf("%q is not in the configuration", c.old)
		}
		for _, verb := range []string{"check", "run"} {
			place := regexp.MustCompile(`c\.yaml:\d+:\d+: ` + regexp.QuoteMeta(c.want))
			if got := check(wrong, verb); got.status != 1 || got.stdout != "" || !place.MatchString(got.stderr) {
				t.Errorf("%s: %+v; expected a place and %q", verb, got, c.want)
			}
		}
		if got := check(wrong, "check", "--offline"); got.status != 0 || !strings.Contains(got.stdout, "is valid") {
			t.Errorf("--offline: %+v", got)
		}
	}
	if got := check(text, "check", "--devices"); got.status != 0 || !strings.Contains(got.stdout, "port wan: net_af_packet, interface b0") || strings.Contains(got.stdout, "warning") {
		t.Errorf("--devices: %+v", got)
	}
	p := startIn(t, program, dir, liveConfig)
	const busy = "is in use by the gateway with process ID %d"
	if got := check(text, "check"); got.status != 0 || !strings.Contains(got.stdout, "is valid") || strings.Count(got.stderr, fmt.Sprintf(busy, p.cmd.Process.Pid)) != 2 {
		t.Errorf("beside a running gateway: %+v", got)
	}
	if got := check(text, "run"); got.status != 1 || !strings.Contains(got.stderr, fmt.Sprintf(busy, p.cmd.Process.Pid)) {
		t.Errorf("a second gateway: %+v", got)
	}
	p.stop()
}
