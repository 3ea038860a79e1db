//go:build !nodpdk

package dpdk

// #include <rte_build_config.h>
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// pluginFolder has the libraries of the drivers, which EAL loads.
const pluginFolder = C.RTE_EAL_PMD_PATH

// Part is the part of a Config that a Fault is about.
type Part uint8

// Parts.
const (
	Workers Part = iota // Cores, by index; Config as a whole, too
	Ports               // by index
	EALArgs
	MemorySize
)

// Fault is a reason why a Config can't be used on this host.
type Fault struct {
	Part  Part
	Index int
	Err   error
}

// Faults are all reasons that were found; at least one.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes the causes known to errors.Is and errors.As.
func (f Faults) Unwrap() []error {
	all := make([]error, len(f))
	for i := range f {
		all[i] = f[i].Err
	}
	return all
}

// add adds a fault, unless err is nil.
func (f *Faults) add(part Part, index int, err error) {
	if err != nil {
		*f = append(*f, Fault{part, index, err})
	}
}

// asFaults makes a fault of an error that is none yet.
func asFaults(part Part, err error) error {
	if faults := (Faults)(nil); errors.As(err, &faults) {
		return err
	}
	return Faults{{part, 0, err}}
}

// Check lists the reasons for which Open would fail on this host, as far as they show without opening a device or starting the EAL. It changes nothing, and
// needs no rights. unseen has what it couldn't see without rights, or because a gateway uses the devices.
func Check(cfg Config) (faults Faults, unseen []error) {
	p := startPlan(cfg)
	p.onlyLooks = true
	busy := false
	for _, f := range p.examine() {
		var taken *inUseError
		switch {
		case errors.As(f.Err, &taken):
			busy = true
			fallthrough
		case errors.Is(f.Err, fs.ErrPermission):
			unseen = append(unseen, f.Err)
		default:
			faults = append(faults, f)
		}
	}
	for i, d := range p.devices {
		if !d.pci && d.iface == "" && d.name != "" {
			faults.add(Ports, i, portError(p.Ports[i], cmp.Or(d.checkDriver(pluginFolder, cfg.EALArgs), d.checkFiles())))
		}
	}
	faults.add(EALArgs, 0, checkEALNames(cfg.EALArgs))
	e := p.eal()
	if len(faults) == 0 {
		_, err := ealArgs(e)
		faults.add(EALArgs, 0, err)
	}
	if busy { // the running gateway has memory that it would give back
		return faults, append(unseen, errors.New("the memory was not checked, because a running gateway has some of it"))
	}
	if len(faults) == 0 && len(unseen) == 0 {
		faults.add(MemorySize, 0, e.checkMemory())
	}
	return faults, unseen
}

// ealOptions are EAL's long and short options (DPDK 22.11).
var (
	ealOptions = []string{
		"allow", "base-virtaddr", "block", "create-uio-dev", "file-prefix", "force-max-simd-bitwidth", "help", "huge-dir", "huge-unlink", "huge-worker-stack", "in-memory",
		"iova-mode", "lcores", "legacy-mem", "log-level", "main-lcore", "match-allocations", "mbuf-pool-ops-name", "no-hpet", "no-huge", "no-pci", "no-shconf",
		"no-telemetry", "proc-type", "single-file-segments", "socket-limit", "socket-mem", "syslog", "telemetry", "trace", "trace-bufsz", "trace-dir", "trace-mode",
		"vdev", "version", "vfio-intr", "vfio-vf-token", "vmware-tsc-map",
	}
	ealLetters = "abcdhlmnrsSv"
)

// checkEALNames refuses options that EAL doesn't have: it would end the process.
func checkEALNames(args []string) error {
	for _, arg := range args {
		long, isLong := strings.CutPrefix(arg, "--")
		long, _, _ = strings.Cut(long, "=")
		abbreviates := func(option string) bool { return strings.HasPrefix(option, long) }
		if isLong && !slices.ContainsFunc(ealOptions, abbreviates) || !isLong && len(arg) > 1 && arg[0] == '-' && !strings.Contains(ealLetters, arg[1:2]) {
			return fmt.Errorf("dpdk: %q is not an option of EAL; dpdk-testpmd --help lists them", arg)
		}
	}
	return nil
}

// checkDriver looks for a virtual device's driver among the libraries in folder, from which EAL loads drivers, and for the device's arguments in that library.
func (d device) checkDriver(folder string, args []string) error {
	libraries, _ := fs.Glob(os.DirFS(folder), "librte_net_*.so")
	if len(libraries) == 0 || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-d") }) {
		return nil // the drivers are elsewhere
	}
	name := d.name
	if rest, ok := strings.CutPrefix(name, "eth_"); ok {
		name = "net_" + rest
	}
	for _, library := range libraries {
		content, err := os.ReadFile(folder + "/" + library)
		if err != nil {
			return nil
		}
		if text := string(content); hasDriver(text, name) {
			return d.checkArguments(text)
		}
	}
	return fmt.Errorf("no driver for %s is installed: expected one of DPDK's in %s (Debian's packages librte-net-*)", d.name, folder)
}

// hasDriver reports whether a library has the driver of a virtual device. DPDK's build describes each driver in its library.
func hasDriver(library, device string) bool {
	const mark = `PMD_INFO_STRING= {"name": "`
	for rest := library; ; {
		at := strings.Index(rest, mark)
		if at < 0 {
			return false
		}
		rest = rest[at+len(mark):]
		if driver, _, ok := strings.Cut(rest, `"`); ok && driver != "" && strings.HasPrefix(device, driver) {
			return true
		}
	}
}

// checkArguments refuses arguments whose keys don't occur in the driver's library.
func (d device) checkArguments(library string) error {
	for kv := range strings.SplitSeq(d.args, ",") {
		if key, _, ok := strings.Cut(kv, "="); ok && key != "" && !strings.Contains(library, key+"\x00") && !strings.Contains(library, key+"=") {
			return fmt.Errorf("the driver of %s has no argument %q (see the driver's page in DPDK's NIC guide)", d.name, key)
		}
	}
	return nil
}

// checkFiles refuses a virtual device whose files aren't there.
func (d device) checkFiles() error {
	needs := map[string]string{}
	for kv := range strings.SplitSeq(d.args, ",") {
		key, value, _ := strings.Cut(kv, "=")
		needs[key] = value
	}
	var file string
	switch {
	case d.is("tap"), d.is("tun"):
		file = "/dev/net/tun"
	case d.is("virtio_user") && needs["server"] != "1":
		file = needs["path"]
	case d.is("pcap"):
		file = needs["rx_pcap"]
	}
	if file == "" {
		return nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w%s", err, d.hint())
	}
	return nil
}
