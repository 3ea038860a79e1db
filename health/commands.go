package health

import (
	"strconv"
	"strings"
)

// placeholders are what only the person knows who types a command.
var placeholders = []struct{ name, what string }{
	{"$IF", "the RDMA interface"}, {"$DEVICE", "the PCI address of the NIC"}, {"$PRIO", "the priority of the traffic, often 3"}, {"$INDEX", "the number that show_gids prints"},
}

// drops and lossless are commands at a host.
func drops(at string) string {
	return "ethtool -S $IF | grep -iE 'discard|drop|crc|out_of_buffer'   # at " + at + "; then the same counters of the switch ports between here and there"
}

func lossless(at string) string {
	return "mlnx_qos -i $IF   # at " + at + ": is PFC on for the priority of the traffic?"
}

const (
	whole     = "tcpdump -i $IF -s 192 -B 65536 -w again.pcap udp port 4791 or icmp or icmp6   # at {from}, before the job begins"
	followed  = "cnpgate capture --flow {from},{to} --data -w again.pcapng   # at this gateway"
	ownPorts  = "cnpgate show ports   # at this gateway: what each port drops, and how full its queue gets"
	whoPauses = "ethtool -S $IF | grep -i pause   # at every host: which one sends pauses?"
)

// commands are what a person types to change what a verdict is about, or to look at it more closely, each with a comment that says where, and a comment that says
// what the placeholders are.
func (v *Verdict) commands(gateway bool) []string {
	k := kinds[v.Name]
	all := k.commands
	if gateway && k.inGateway != "" {
		all = []string{k.inGateway}
	}
	if v.Commands != nil { // who says it knows better
		all = v.Commands
	}
	subject := v.Subject
	if len(v.Pairs) > 0 {
		subject = v.Pairs[0].Subject
	}
	hosts, _, _ := strings.Cut(subject, ", ")
	from, to, _ := strings.Cut(hosts, " -> ")
	text := strings.NewReplacer("{from}", from, "{to}", to, "{lossy}", v.lossy.String(), "{timeout}", strconv.Itoa(v.timeout),
		"{timeout ms}", strconv.FormatInt(int64(4096)<<v.timeout/ms, 10)).Replace(strings.Join(all, "\n"))
	if text == "" {
		return nil
	}
	var open []string
	for _, p := range placeholders {
		if strings.Contains(text, p.name) {
			open = append(open, p.name+" is "+p.what)
		}
	}
	if len(open) > 0 {
		text += "\n# " + strings.Join(open, "; ")
	}
	return strings.Split(text, "\n")
}
