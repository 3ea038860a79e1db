//go:build live && !nodpdk

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// The hosts of an example: four connections from dc-a to dc-b offer three times what the WAN port sends. The addresses are the endpoints' own, not the kernel's.
const (
	hosts = `
for i in dc-a gateway dc-b; do ip netns add $i; ip netns exec $i sysctl -qw net.ipv6.conf.default.disable_ipv6=1; done
ip link add host0 netns dc-a type veth peer name eth0 netns gateway
ip link add host0 netns dc-b type veth peer name %s netns %s
for i in dc-a dc-b; do ip -n $i link set dev host0 up; done
`
	load = `
endpoint() { exec ip netns exec $1 bin/cnpgate endpoint $2 -i host0 --qps 4 "${@:3}"; }
endpoint dc-b receive --address 198.18.1.2 --mac 02:00:00:18:00:02 --no-cnp &
endpoint dc-a send --address 198.18.0.1 --peer 198.18.1.2 --peer-mac 02:00:00:18:00:02 --trust 198.18.1.2 --rate 300Mbps --duration 10m --timeout 2s &
`
	bridged = `
ip -n gateway link add br0 type bridge mcast_snooping 0
for i in eth0 eth1; do ip -n gateway link set dev $i master br0 up; done
ip -n gateway link set dev br0 up
`
	// A bridge that learns nothing copies the frames of both directions to its third port.
	mirrored = `
ip -n gateway link add span0 type veth peer name eth2
ip -n gateway link set dev span0 master br0 up
ip -n gateway link set dev eth2 up
ip -n gateway link set dev br0 type bridge ageing_time 0
`
	// The machine at the other end of the WAN, with a /run of its own.
	other = `
ip link add eth1 netns gateway type veth peer name eth1 netns gateway-b
echo "exec ip netns exec gateway-b unshare -m bash -c 'mount -t tmpfs none /run && exec \"\$@\"' there \"\$@\"" >there
`
)

// TestExamples carries out, for each example, what an operator does from the installation to the first notification that the gateway would send: at most
// five commands, and no edit. Bare metal is tried in a guest (internal/testkit/guest).
func TestExamples(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	dir := checkout(t)
	const (
		prepare = "ip netns exec gateway scripts/host-setup --interface eth0 --interface eth1"
		check   = "ip netns exec gateway bin/cnpgate check deploy/"
		start   = "ip netns exec gateway bin/cnpgate run deploy/"
		inBack  = " 2>log &"
	)
	type example struct {
		file, kind string
		operator   []string // commands behind those of all examples, and before the last one, which shows notifications
	}
	both := fmt.Sprintf(hosts, "eth1", "gateway")
	for _, c := range []struct {
		name, wires string
		prepare     []string
		examples    []example
	}{
		{"between interfaces", both, []string{prepare}, []example{
			{"laptop-af-packet.yaml", "standard-cnp", []string{check + "laptop-af-packet.yaml", start + "laptop-af-packet.yaml" + inBack}},
			{"lossless.yaml", "standard-cnp", []string{check + "lossless.yaml", start + "lossless.yaml" + inBack}},
			{"proxy.yaml", "proxy-notification", []string{check + "proxy.yaml", start + "proxy.yaml" + inBack}},
		}},
		{"two gateways", "ip netns add gateway-b\n" + fmt.Sprintf(hosts, "eth0", "gateway-b") + other, []string{prepare}, []example{{"two-gateways.yaml", "standard-cnp", []string{
			start + "two-gateways.yaml" + inBack, "bash there scripts/host-setup --interface eth0 --interface eth1", "bash there bin/cnpgate run deploy/two-gateways.yaml 2>log-b &"}}}},
		{"tap", both + bridged, nil, []example{{"tap.yaml", "standard-cnp", []string{check + "tap.yaml", start + "tap.yaml" + inBack}}}},
		{"single tap", both + bridged + mirrored, nil, []example{{"tap-single.yaml", "standard-cnp", []string{check + "tap-single.yaml", start + "tap-single.yaml" + inBack}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := "mount -t tmpfs none /run\nmkdir /run/netns\nset -e\ntrap 'kill $(jobs -p); wait' EXIT\n" + c.wires + strings.Join(c.prepare, "\n")
			for i, e := range c.examples {
				if n := len(c.prepare) + len(e.operator) + 1; n > 5 {
					t.Errorf("%s: %d commands, expected at most 5", e.file, n)
				}
				if i > 0 {
					script += "kill $gateway; wait $gateway"
				}
				script += "\n" + strings.Join(e.operator, "\n") + "\ngateway=$!\n"
				if i == 0 {
					script += load
				}
				script += "for ((i = 0; i < 600; i++)); do [ -S /run/cnpgate/cnpgate.sock ] && break; sleep 0.1; done\n" +
					"timeout 60 bin/cnpgate show notifications --follow --outcome observed -o json | head -n 1 >&3\n"
			}
			cmd := exec.Command("bash", "-c", script)
			cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
			out, shown, err := run(cmd)
			log, _ := os.ReadFile(dir + "/log")
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, log)
			}
			for d, i := json.NewDecoder(bytes.NewReader(shown)), 0; i < len(c.examples); i++ {
				var first struct {
					Notification struct {
						Kind     string
						SourceIP netip.Addr `json:"source_ip"`
					}
				}
				if err := d.Decode(&first); err != nil {
					t.Fatalf("%s: %v\n%s\n%s\n%s", c.examples[i].file, err, shown, out, log)
				}
				if n := first.Notification; n.Kind != c.examples[i].kind || n.SourceIP.String() != "198.18.0.1" {
					t.Errorf("%s: the first notification is %+v, expected %s about 198.18.0.1", c.examples[i].file, n, c.examples[i].kind)
				}
			}
		})
	}
}

// run runs a command, and returns its output and what it writes to descriptor 3.
func run(cmd *exec.Cmd) (out, third []byte, err error) {
	f, err := os.CreateTemp("", "cnpgate-examples-")
	if err != nil {
		return nil, nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	cmd.ExtraFiles = []*os.File{f}
	if out, err = cmd.CombinedOutput(); err != nil {
		return out, nil, err
	}
	third, err = os.ReadFile(f.Name())
	return out, third, err
}
