package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ovs is an Open vSwitch of its own, with DPDK: an ovsdb-server and an ovs-vswitchd in a folder and a network namespace of their own. Its
// polling thread has no pause, so that it is stopped between runs.
type ovs struct {
	b       *bench
	dir     string
	db      *process
	switchd *process
	thread  *stoppedThread // that polls
	last    ovsCounts
	flows   int
}

// Paths in Debian's packages openvswitch-switch-dpdk, openvswitch-switch and openvswitch-common.
const (
	ovsSwitchd = "usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
	ovsServer  = "usr/sbin/ovsdb-server"
	ovsSchema  = "usr/share/openvswitch/vswitch.ovsschema"
	ovsTools   = "usr/bin"
)

// ovsBridge is the name of the bridge.
const ovsBridge = "bench0"

// ovsTries is how often a run is tried.
const ovsTries = 5

// ovsExact is the number of entries of the exact-match cache (EMC).
const ovsExact = 8192

func startOVS(b *bench, l *layout, t traffic) (f forwarder, err error) {
	if _, err := found(filepath.Join(b.peers, ovsSwitchd), "Debian's package openvswitch-switch-dpdk"); err != nil {
		return nil, err
	}
	switch {
	case os.Getuid() != 0:
		return nil, fmt.Errorf("%w: OVS-DPDK needs root", errLeftOut)
	case !b.hugepages: // it always passes --in-memory to EAL, which refuses that together with --no-huge
		return nil, fmt.Errorf("%w: OVS-DPDK needs hugepages", errLeftOut)
	}
	o := &ovs{b: b, dir: filepath.Join(b.dir, "ovs"), flows: t.flows}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, err
	}
	for _, f := range []func() error{
		o.startDB, func() error { return o.startSwitch(l) }, o.addBridge, func() error { return o.addFlows(t.tuples()) }, func() error { return o.addPorts(l) }, o.findThread, o.warmUp,
	} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// alone prefixes a command so that it has OVS' folder and network namespace, and the cores that aren't measured.
func (o *ovs) alone(args ...string) []string {
	prefix := []string{"env"}
	for _, name := range []string{"OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"} {
		prefix = append(prefix, name+"="+o.dir)
	}
	prefix = append(prefix, "unshare", "--net", "taskset", "--cpu-list", number10(o.b.mainCore))
	return append(prefix, args...)
}

// tool runs one of OVS' tools to its end.
func (o *ovs) tool(name string, args ...string) ([]byte, error) {
	args = o.alone(append([]string{filepath.Join(o.b.peers, ovsTools, name)}, args...)...)
	c := exec.Command(args[0], args[1:]...)
	var wrong bytes.Buffer
	c.Stderr = &wrong
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("OVS: %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(wrong.String()))
	}
	return out, nil
}

func (o *ovs) path(name string) string { return filepath.Join(o.dir, name) }

func (o *ovs) vsctl(args ...string) error {
	_, err := o.tool("ovs-vsctl", append([]string{"--timeout=60", "--db=unix:" + o.path("db.sock")}, args...)...)
	return err
}

// statistics are the polling thread's. While it is stopped, the thread that answers may wait for it (for a grace period of RCU): then it runs a
// little more.
func (o *ovs) statistics() (text []byte, err error) {
	for range 10 {
		if text, err = o.tool("ovs-appctl", "--timeout=2", "-t", o.path("switch.ctl"), "dpif-netdev/pmd-stats-show", "-pmd", number10(o.b.core)); err == nil {
			return text, nil
		}
		if err := o.thread.run(time.Millisecond); err != nil {
			return nil, o.switchd.failed(err)
		}
	}
	return nil, err
}

func (o *ovs) startDB() (err error) {
	if err := os.RemoveAll(o.path("conf.db")); err != nil {
		return err
	}
	if _, err := o.tool("ovsdb-tool", "create", o.path("conf.db"), filepath.Join(o.b.peers, ovsSchema)); err != nil {
		return err
	}
	o.db, err = start("ovsdb-server", o.alone(filepath.Join(o.b.peers, ovsServer), o.path("conf.db"), "--remote=punix:"+o.path("db.sock"), "--unixctl="+o.path("db.ctl"))...)
	if err != nil {
		return err
	}
	return o.await("ovsdb-server", o.db, o.path("db.sock"))
}

// startSwitch starts ovs-vswitchd: one polling thread, on the measured core; every flow goes into the exact-match cache; none is forgotten while the
// other side runs.
func (o *ovs) startSwitch(l *layout) (err error) {
	extra := strings.Join(o.b.eal(0), " ")
	if err := o.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true", "other_config:dpdk-extra="+strconv.Quote(extra),
		fmt.Sprintf("other_config:dpdk-lcore-mask=0x%x", uint64(1)<<o.b.mainCore), fmt.Sprintf("other_config:pmd-cpu-mask=0x%x", uint64(1)<<o.b.core),
		"other_config:emc-insert-inv-prob=1", "other_config:max-idle=3600000"); err != nil {
		return err
	}
	o.switchd, err = start("ovs-vswitchd", o.alone(append(l.environment(), filepath.Join(o.b.peers, ovsSwitchd), "unix:"+o.path("db.sock"), "--unixctl="+o.path("switch.ctl"), "--pidfile="+o.path("switch.pid"))...)...)
	if err != nil {
		return err
	}
	return o.await("ovs-vswitchd", o.switchd, o.path("switch.ctl"))
}

// await waits until a program has made a socket.
func (o *ovs) await(name string, p *process, socket string) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return nil
		}
	}
	return p.failed(fmt.Errorf("%s did not start in %v", name, patience))
}

// addBridge adds a bridge in user space.
func (o *ovs) addBridge() error {
	return o.said(o.vsctl("add-br", ovsBridge, "--", "set", "Bridge", ovsBridge, "datapath_type=netdev", "fail_mode=secure"))
}

// addPorts adds the devices of a layout as ports 1 and 2. There are rules by then: each rule that is added later makes OVS check all flows that it has seen.
func (o *ovs) addPorts(l *layout) error {
	for i, device := range l.devices {
		name := "p" + number10(i+1)
		if err := o.said(o.vsctl("add-port", ovsBridge, name, "--", "set", "Interface", name, "type=dpdk", "options:dpdk-devargs="+strconv.Quote(device),
			"ofport_request="+number10(i+1))); err != nil {
			return err
		}
	}
	return nil
}

// said adds to an error what ovs-vswitchd has said: a tool only waits in vain.
func (o *ovs) said(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; ovs-vswitchd said: %s", err, o.switchd.log.last())
}

// addFlows adds a rule for each flow.
func (o *ovs) addFlows(flows []tuple) error {
	file := o.path("flows")
	if err := os.WriteFile(file, ovsRules(flows), 0o600); err != nil {
		return err
	}
	_, err := o.tool("ovs-ofctl", "--timeout=60", "add-flows", "unix:"+o.path(ovsBridge+".mgmt"), file)
	return err
}

// ovsRules are the flows in OpenFlow: the five-tuple and the port, so that the switch also distinguishes them in its caches.
func ovsRules(flows []tuple) []byte {
	var text bytes.Buffer
	for _, f := range flows {
		fmt.Fprintf(&text, "in_port=%d,udp,nw_src=%s,nw_dst=%s,tp_src=%d,tp_dst=%d,actions=output:%d\n",
			f.in+1, f.source, f.destination, tupleSource, tupleDestination, f.out+1)
	}
	return text.Bytes()
}

// findThread finds the polling thread, and stops it.
func (o *ovs) findThread() error {
	pid, err := os.ReadFile(o.path("switch.pid"))
	if err != nil {
		return err
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%s/task/*", bytes.TrimSpace(pid)))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if name, err := os.ReadFile(filepath.Join(task, "comm")); err == nil && strings.HasPrefix(string(name), "pmd-") {
			o.thread, err = stopThread(task)
			return err
		}
	}
	return o.switchd.failed(fmt.Errorf("none of its threads is called pmd-: this version can't be measured, or its ports failed"))
}

// warmUp runs until each flow is in the caches. OVS allows 10,000 flows at first, and 1,000 more after each look at all of them.
func (o *ovs) warmUp() error {
	var s ovsCounts
	for end := time.Now().Add(startup); time.Now().Before(end); {
		var err error
		if s, err = o.slice(200 * time.Millisecond); err != nil {
			return err
		}
		if s.received > uint64(8*o.flows) && s.misses == 0 {
			return nil
		}
	}
	return fmt.Errorf("OVS: %d of %d frames still miss its caches after %v", s.misses, s.received, startup)
}

// run lets the polling thread run for so much CPU time. OVS forgets flows when its look at all of them takes long: a run with misses doesn't
// count, and is repeated when the caches are warm again.
func (o *ovs) run(d time.Duration) (*sample, error) {
	for try := 1; ; try++ {
		began := time.Now()
		s, err := o.slice(d)
		if err != nil {
			return nil, err
		}
		if err = s.check(o.flows <= ovsExact/2); err == nil || try == ovsTries {
			return &sample{Ops: s.received, CPU: s.cpu, Wall: time.Since(began).Nanoseconds()}, err
		}
		if err := o.warmUp(); err != nil {
			return nil, err
		}
	}
}

// slice returns what has been counted in a run of so much CPU time.
func (o *ovs) slice(d time.Duration) (s ovsCounts, err error) {
	if err := o.thread.run(d); err != nil {
		return s, o.switchd.failed(err)
	}
	text, err := o.statistics()
	if err != nil {
		return s, err
	}
	now, err := readOVSCounts(text)
	if err != nil {
		return s, err
	}
	if now.cpu, err = o.thread.cpu(); err != nil {
		return s, err
	}
	s = now.since(o.last)
	o.last = now
	return s, nil
}

// ovsCounts are counts of the polling thread so far.
type ovsCounts struct {
	received, exact, megaflow, misses uint64
	cpu                               int64 // ns
}

func (c ovsCounts) since(b ovsCounts) ovsCounts {
	return ovsCounts{c.received - b.received, c.exact - b.exact, c.megaflow - b.megaflow, c.misses - b.misses, c.cpu - b.cpu}
}

// check returns an error if a run doesn't count. exact is whether the exact-match cache has all flows.
func (c ovsCounts) check(exact bool) error {
	switch {
	case c.received == 0 || c.cpu <= 0 || c.misses > c.received/10000: // a miss costs a hundred hits
		return fmt.Errorf("OVS: %d frames received, %d of them missed all its caches", c.received, c.misses)
	case exact && c.exact < c.received/100*99:
		return fmt.Errorf("OVS: %d of %d frames hit the exact-match cache", c.exact, c.received)
	}
	return nil
}

// readOVSCounts reads what pmd-stats-show prints of one thread.
func readOVSCounts(text []byte) (c ovsCounts, err error) {
	missed := [2]uint64{}
	for name, to := range map[string]*uint64{
		"packets received:": &c.received, "emc hits:": &c.exact, "megaflow hits:": &c.megaflow,
		"miss with success upcall:": &missed[0], "miss with failed upcall:": &missed[1],
	} {
		found := false
		for line := range strings.Lines(string(text)) {
			if n, ok := number(line, name); ok && !found {
				*to, found = n, true
			}
		}
		if !found {
			return c, fmt.Errorf("OVS: its statistics are %q, expected %q", text, name)
		}
	}
	c.misses = missed[0] + missed[1]
	return c, nil
}

// close ends the switch and its database.
func (o *ovs) close() {
	if o.thread != nil {
		o.thread.release()
	}
	for _, p := range []*process{o.switchd, o.db} {
		if p != nil {
			p.end()
		}
	}
	_ = os.RemoveAll(o.dir)
}
