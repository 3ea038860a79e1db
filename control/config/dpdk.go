package config

import "strings"

func (r *report) checkDPDK(s *dpdkSection) {
	if s.Hugepages.valid && !s.Hugepages.V && s.InMemory.V {
		r.problem(s.InMemory.place, "true contradicts hugepages: false at %s; EAL's in-memory mode needs hugepages, leave it out",
			r.position(s.Hugepages.place))
	}
	for i := range s.EALArgs.Items {
		switch arg := &s.EALArgs.Items[i]; {
		case !arg.valid:
		case !strings.HasPrefix(arg.V, "-") && i == 0, arg.V == "-", arg.V == "--":
			r.problem(arg.place, "%s is not an EAL option; expected one such as --log-level=lib.eal:debug", quote(arg.V))
		case strings.HasPrefix(arg.V, "-"):
			r.checkEALArg(arg)
		}
	}
}

// ownArgs are the EAL arguments that the gateway sets itself, and the replacement for each.
var ownArgs = []struct{ short, long, use string }{
	{"a", "allow", usePorts},
	{"b", "block", usePorts},
	{"", "vdev", usePorts},
	{"", "no-pci", "the gateway adds it when no port's device is a PCI address"},
	{"l", "lcores", useWorkers},
	{"c", "", useWorkers},
	{"", "main-lcore", useWorkers},
	{"m", "", "memory is sized from ports[].queue_capacity and ports[].mtu"},
	{"", "no-huge", useHugepages},
	{"", "no-shconf", useHugepages},
	{"", "in-memory", "set dpdk.in_memory: true"},
	{"", "file-prefix", "the gateway makes one of its own"},
	{"", "proc-type", "the gateway is always the primary process"},
	{"h", "help", "it would end the gateway; dpdk-testpmd --help lists EAL's options"},
}

const (
	usePorts     = "name the devices in ports[].device"
	useWorkers   = "name the cores in dpdk.workers"
	useHugepages = "set dpdk.hugepages: false"
)

// checkEALArg refuses the arguments in ownArgs, in every form that getopt_long(3) accepts: long options may be abbreviated, short
// ones combined.
func (r *report) checkEALArg(arg *text) {
	long, isLong := strings.CutPrefix(arg.V, "--")
	long, _, _ = strings.Cut(long, "=")
	for _, own := range ownArgs {
		if isLong && strings.HasPrefix(own.long, long) || !isLong && own.short != "" && hasShort(arg.V[1:], own.short[0]) {
			r.problem(arg.place, "%s is not allowed in eal_args, because the gateway sets it; %s", quote(arg.V), own.use)
			return
		}
	}
}

// hasShort reports whether a cluster of short options contains one. All but -h and -v take the rest of the cluster as their value.
func hasShort(cluster string, option byte) bool {
	for i := range len(cluster) {
		if cluster[i] == option {
			return true
		}
		if cluster[i] != 'h' && cluster[i] != 'v' {
			return false
		}
	}
	return false
}
